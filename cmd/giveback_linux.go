package cmd

import "syscall"

// giveBack gives memory back that holds nothing but zeros: it reads as zeros still. Where the
// system does not take it, it stays.
func giveBack(zeros []byte) { _ = syscall.Madvise(zeros, syscall.MADV_DONTNEED) }
