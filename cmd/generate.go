package cmd

//go:generate go test -run TestThePageOfMetricsIsWhatProcessesRegister|TestTheReferenceIsWhatHelpSays -args -rewrite
