package insight

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// fills are the colours of Graphviz of what becomes of an object.
var fills = map[Outcome]string{Deleted: "mistyrose", Released: "lightyellow", Unknown: "plum", Stuck: "tomato"}

// DOT draws a plan for Graphviz: what becomes of each object, and an edge from it to each owner, or
// namespace, or definition, with which it goes. Graphviz reads UTF-8, and knows no escapes of other
// letters; what cannot be seen is written out by Object already.
func (p *Plan) DOT(out io.Writer) error {
	w := bufio.NewWriter(out)
	at := map[types.UID]int{}
	fmt.Fprintln(w, "digraph plan {")
	for n, i := range p.Items {
		at[i.UID] = n
		fmt.Fprintf(w, "  %d [label=%s, style=filled, fillcolor=%s];\n", n, strconv.Quote(fmt.Sprintf("%s\n%s, step %d", i.Object, i.Outcome, i.Step)), fills[i.Outcome])
	}
	for n, i := range p.Items {
		owners := i.owners
		if i.via != "" {
			owners = append(owners[:len(owners):len(owners)], i.via)
		}
		for _, o := range owners {
			if to, ok := at[o]; ok {
				fmt.Fprintf(w, "  %d -> %d;\n", n, to)
			}
		}
	}
	fmt.Fprintln(w, "}")
	return w.Flush()
}
