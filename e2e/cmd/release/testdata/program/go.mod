// A small program in the place of Weir, so that a test can build it for all platforms in no time.
module github.com/weir-dev/weir

go 1.26.0
