package certs

import (
	"fmt"
)

// served is the certificate of each replica.
func (s *site) served() []string {
	s.Helper()
	var out []string
	for _, r := range s.replicas {
		pair, err := r.GetCertificate(nil)
		if err != nil {
			s.Fatal(err)
		}
		out = append(out, pair.Leaf.SerialNumber.String())
	}
	return out
}

func (s *site) allServeAnother(than []string) func() error {
	return func() error {
		for i, now := range s.served() {
			if now == than[i] {
				return fmt.Errorf("replica %d still serves %s", i, now)
			}
		}
		return nil
	}
}
