package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/weir-dev/weir/controller/await"
)

const (
	// probeEvery is how often the API server's history is checked. A process that follows the graph
	// checks it more often, and calls Rewound; a webhook without the graph has nothing else.
	probeEvery   = 15 * time.Second
	probeTimeout = 10 * time.Second
)

// Rewound has policies and namespaces listed again, because the history of the API server went
// back, as after a restore from a backup. What is in force stays until then, since without policies
// all requests would pass.
func (s *State) Rewound(string) {
	for _, o := range s.objects {
		o.rewind()
	}
	s.namespaces.rewind()
	s.rewinds.Add(1)
}

// Current returns why the policies in force may not be those of the API server: its history went
// back, and not everything has been listed again.
func (s *State) Current() error {
	if s.rewinds.Load() == s.compiledOf.Load() {
		return nil
	}
	if err := s.missing(); err != nil {
		return fmt.Errorf("the API server's history went back: %w", err)
	}
	return errors.New("the API server's history went back: policies are being compiled")
}

// probe checks the history until ctx ends.
func (s *State) probe(ctx context.Context) {
	for await.Pause(ctx, probeEvery) == nil {
		if why := s.wentBack(ctx); why != "" {
			s.options.Log.Info("the API server's history went back, as after a restore from a backup: "+
				"policies and namespaces are listed again", "why", why)
			s.Rewound(why)
		}
	}
}

// wentBack returns why the history must have gone back, if it did: a consistent list is older than
// what the watch has shown.
func (s *State) wentBack(ctx context.Context) string {
	seen := s.namespaces.reached()
	if seen == "" {
		return ""
	}
	within, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	list, err := s.client.Resource(namespaces).List(within, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "" // it is asked again
	}
	if order, err := resourceversion.CompareResourceVersion(list.GetResourceVersion(), seen); err != nil || order >= 0 {
		return ""
	}
	return fmt.Sprintf("namespaces: resourceVersion %s, and %s was seen before", list.GetResourceVersion(), seen)
}
