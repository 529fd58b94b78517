package cmd

//go:generate go run ./reference ../docs/reference ../docs/metrics.md
