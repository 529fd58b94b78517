package cmd

//go:generate go run ./reference ../docs/reference
//go:generate go test -run TestThePageOfMetricsIsWhatProcessesRegister -args -rewrite
