package e2e

// mustNotRewind looks whether weir has taken an API server that is late for one that was restored
// from a backup.
func (w *fixture) mustNotRewind() {
	w.Helper()
	if n := w.sum("weir_history_rewound_total"); n > 0 {
		w.Errorf("the history went back %.0f times for weir", n)
	}
}

// sum is what one of weir's metrics says.
func (w *fixture) sum(metric string, labels ...string) float64 {
	w.Helper()
	m, err := w.weir.Metrics(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return m.Sum(metric, labels...)
}
