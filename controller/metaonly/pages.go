package metaonly

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostIdle is how many pages in a row may bring nothing new: an API that looks for what is asked
// for among much else may answer with none of it for a while.
const mostIdle = 10

// Pages finds out that a list has no end. An API that gives another token with each page, and
// nothing with it, or the same over and over, would be asked for ever. A page is known again by the
// object that it begins with: that is little to remember of a list of a million. The zero value is
// a list that begins.
type Pages struct {
	token string
	first string          // what the page under way begins with
	seen  map[string]bool // what pages began with
	idle  int             // pages in a row that brought nothing new
}

// Saw takes in an object of the page under way.
func (p *Pages) Saw(m *metav1.ObjectMeta) {
	if p.first == "" {
		p.first = m.Namespace + "/" + m.Name + "/" + string(m.UID)
	}
}

// Next takes in that the page has ended, and where the list continues. An error says that the list
// has no end.
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
