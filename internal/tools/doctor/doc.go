// Package doctor says what a cluster allows Weir, which mode fits, and what is missing. It is pure:
// Facts, which others have read, go in, and Findings come out. What was not read is unknown, and
// said to be.
package doctor
