// Package doctor says what a cluster allows Weir, which mode fits, and what is missing. It is pure:
// Facts, which the caller has read, go in, and Findings come out. What was not read is reported as
// unknown.
package doctor
