package metaonly

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostIdle is how many pages in a row may bring nothing new: an API that filters much else may
// answer with empty pages for a while.
const mostIdle = 10

// Pages detects a list without an end: an API that returns another token with each page, but
// nothing new, would be asked forever. It recognizes a page by its first object, which takes little
// memory for a list of a million. The zero value is ready for a list.
type Pages struct {
	token string
	first string          // the first object of the current page
	seen  map[string]bool // the first objects of pages before
	idle  int             // pages in a row that brought nothing new
}

// Saw adds an object to the current page.
func (p *Pages) Saw(m *metav1.ObjectMeta) {
	if p.first == "" {
		p.first = m.Namespace + "/" + m.Name + "/" + string(m.UID)
	}
}

// Next ends the page. token says where the list continues. It returns an error if the list has no
// end.
func (p *Pages) Next(token string) error {
	first := p.first
	p.first = ""
	if token == "" {
		return nil
	}
	if token == p.token {
		return errors.New("the API gives the same page again and again")
	}
	p.token = token
	p.idle++
	if first != "" {
		if !p.seen[first] {
			p.idle = 0
		}
		if p.seen == nil {
			p.seen = map[string]bool{}
		}
		p.seen[first] = true
	}
	if p.idle == mostIdle {
		return fmt.Errorf("the API says of %d pages in a row that there are more, and they bring nothing new", mostIdle)
	}
	return nil
}
