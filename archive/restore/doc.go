// Package restore plans how objects that were deleted are made again. Records, what stands under
// their names now, and the kinds that are served go in; steps in order come out, each with its why.
// It is pure: the executor (ask/undo) does what the steps say.
//
//	under the recorded name is                   the object is
//	nothing                                      made again
//	the object itself, by its uid                there: it was not deleted
//	what this restore made, by an annotation     there; a reference that it still lacks is added
//	an equal object                              there
//	another object                               kept, and told; replaced if that is asked for
//	any of these, and it is being deleted        waited for: not now
//
// A restored object never refers to the uid of an object that is gone: collectors know that uid to
// be absent, and would delete what was restored. A reference gets the uid of the owner that was made
// again, or of the living one; else it is dropped, and told.
//
// What is restored carries an annotation, TREE/OLD-UID. It is all the state there is: a plan made
// after half of the steps has the other half.
package restore
