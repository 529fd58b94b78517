package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"gonum.org/v1/plot/plotter"
)

// A table is what was sampled. Its first column is when, in seconds, and its second what was done then.
type table struct {
	head []string
	rows [][]string
	when []float64
}

func read(in io.Reader) (table, error) {
	all, err := csv.NewReader(in).ReadAll() // which holds all rows to the length of the first
	if err != nil {
		return table{}, err
	}
	if len(all) < 2 || len(all[0]) < 3 {
		return table{}, errors.New("want a head, and a row, of three columns or more")
	}
	t := table{head: all[0], rows: all[1:]}
	for i, row := range t.rows {
		seconds, err := strconv.ParseFloat(row[0], 64)
		if err != nil {
			return table{}, fmt.Errorf("row %d: %w", i+1, err)
		}
		t.when = append(t.when, seconds)
	}
	return t, nil
}

// lines are those of a column: a field that is empty ends one.
func (t table) lines(column string) ([]plotter.XYs, error) {
	c := slices.Index(t.head, column)
	if c < 2 {
		return nil, fmt.Errorf("no column %q to draw among %q", column, t.head)
	}
	var lines []plotter.XYs
	open := false
	for i, row := range t.rows {
		if row[c] == "" {
			open = false
			continue
		}
		value, err := strconv.ParseFloat(row[c], 64)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		if !open {
			lines, open = append(lines, nil), true
		}
		last := &lines[len(lines)-1]
		*last = append(*last, plotter.XY{X: t.when[i], Y: value})
	}
	return lines, nil
}

// A stage is what was done from a time on.
type stage struct {
	name string
	from float64
}

func (t table) stages() []stage {
	var stages []stage
	for i, row := range t.rows {
		if len(stages) == 0 || stages[len(stages)-1].name != row[1] {
			stages = append(stages, stage{row[1], t.when[i]})
		}
	}
	return stages
}
