package namespaces

// MostChosen is how many objects are chosen at a time.
const MostChosen = mostChosen
