// Package restore plans how deleted objects are made again. Its input is the records, what has
// their names now, and the kinds that are served. Its output is steps in order, each with its
// reason. It is pure; ask/undo carries the steps out.
//
//	under the recorded name is                   the object is
//	nothing                                      made again
//	the object itself, by its uid                there: it was not deleted
//	what this restore made, by an annotation     there; a reference that it still lacks is added
//	an equal object                              there
//	another object                               kept, and reported; replaced if that is asked for
//	any of these, and it is being deleted        waited for: not now
//
// A restored object never refers to the uid of an object that is gone: collectors know that uid to
// be absent, and would delete what was restored. A reference gets the uid of the owner that was
// made again, or of the living one; else it is dropped, and reported.
//
// What is restored carries an annotation, TREE/OLD-UID. It is all the state there is: a plan made
// after half of the steps has the other half.
package restore
