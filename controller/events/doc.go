// Package events tells users what they need to know about an object, in an Event on it: once, not
// each time. One lock guards what was said last.
package events
