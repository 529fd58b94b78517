package metaonly

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostIdle is how many pages in a row may bring nothing new: an API that looks for what is asked for among much else may answer with none of it
// for a while.
const mostIdle = 10

// Pages finds out that a list has no end. An API that gives another token with each page, and nothing with it, or the same over and over, would be
// asked for ever. A page is known again by the object that it begins with: that is little to remember of a list of a million. The zero value is a list that begins.
type Pages struct {
	token string
	seen  map[string]bool // what pages began with
	idle  int             // pages in a row that brought nothing new
}

// Next takes in a page: the object that it begins with, nil if it has none, and where the list continues. An error says that the list has no end.
func (p *Pages) Next(first *metav1.PartialObjectMetadata, token string) error {
	if token == "" {
		return nil
	}
	if token == p.token {
		return errors.New("the API gives the same page again and again")
	}
	p.token = token
	p.idle++
	if first != nil {
		key := first.Namespace + "/" + first.Name + "/" + string(first.UID)
		if !p.seen[key] {
			p.idle = 0
		}
		if p.seen == nil {
			p.seen = map[string]bool{}
		}
		p.seen[key] = true
	}
	if p.idle == mostIdle {
		return fmt.Errorf("the API says of %d pages in a row that there are more, and they bring nothing new", mostIdle)
	}
	return nil
}
