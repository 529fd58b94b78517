// Command chart draws columns of a table over its first column, which is a time in seconds, as SVG. The table's second column names what was done
// then; where that changes the chart has a line, with the name.
//
//	go run . --table=FILE.csv --columns=made,deleted --title=… --unit=… --out=FILE.svg
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("chart", flag.ExitOnError)
	from := flags.String("table", "", "CSV file with a head")
	columns := flags.String("columns", "", "columns to draw, separated by commas")
	title := flags.String("title", "", "what stands above the chart")
	unit := flags.String("unit", "", "what the columns count")
	to := flags.String("out", "", "SVG file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	file, err := os.Open(*from)
	if err != nil {
		return err
	}
	defer file.Close()
	t, err := read(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", *from, err)
	}
	drawing, err := draw(t, *title, *unit, strings.Split(*columns, ","))
	if err != nil {
		return fmt.Errorf("draw %s: %w", *to, err)
	}
	return os.WriteFile(*to, drawing, 0o644)
}
