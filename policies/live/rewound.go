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
	// probeEvery is how often it is asked whether the API server's history goes on. Whoever follows
	// the graph asks more often, and tells Rewound; a webhook whose policies ask for no graph has
	// nothing else.
	probeEvery   = 15 * time.Second
	probeTimeout = 10 * time.Second
)

// Rewound is told that the history of the API server went back, as after a restore from a backup:
// policies and namespaces are listed again. What is in force stays so until then, because without
// policies all requests would pass.
func (s *State) Rewound(string) {
	for _, o := range s.objects {
		o.rewind()
	}
	s.namespaces.rewind()
	s.rewinds.Add(1)
}

// Current says why the policies in force may not be those that the API server has: its history went
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

// probe looks for a history that went back until ctx ends.
func (s *State) probe(ctx context.Context) {
	for await.Pause(ctx, probeEvery) == nil {
		if why := s.wentBack(ctx); why != "" {
			s.options.Log.Info("the API server's history went back, as after a restore from a backup: policies and namespaces are listed again", "why", why)
			s.Rewound(why)
		}
	}
}

// wentBack says why the history must have gone back, if it is known: the list, which is consistent,
// is not as far as the watch was before.
func (s *State) wentBack(ctx context.Context) string {
	seen := s.namespaces.reached()
	if seen == "" {
		return ""
	}
	within, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	list, err := s.client.Resource(namespaces).List(within, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "" // who cannot be asked is asked again
	}
	if order, err := resourceversion.CompareResourceVersion(list.GetResourceVersion(), seen); err != nil || order >= 0 {
		return ""
	}
	return fmt.Sprintf("namespaces: resourceVersion %s, and %s was seen before", list.GetResourceVersion(), seen)
}
