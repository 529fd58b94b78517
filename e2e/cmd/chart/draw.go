package main

import (
	"bytes"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// colors are told apart by those who see no difference between red and green, too (Okabe and Ito).
var colors = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255}, color.RGBA{86, 180, 233, 255},
}

const (
	width, height = 24 * vg.Centimeter, 11 * vg.Centimeter
	margin        = vg.Centimeter / 3
	namesHeight   = 2 * vg.Centimeter
)

// whole labels ticks without what is always zero.
func whole(least, most float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(least, most)
	for i, t := range ticks {
		if !t.IsMinor() {
			ticks[i].Label = strconv.FormatFloat(t.Value, 'g', -1, 64)
		}
	}
	return ticks
}

// draw draws columns of a table, on white: a page may be dark.
func draw(t table, title, unit string, columns []string) ([]byte, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.Title.Text, p.Y.Label.Text, p.X.Label.Text = title, unit, "seconds"
	p.Title.Padding = margin
	p.Y.Min, p.X.Min, p.X.Max = 0, t.when[0], t.when[len(t.when)-1]
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(whole), plot.TickerFunc(whole)
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs, p.Legend.YOffs = true, true, vg.Centimeter, -namesHeight
	p.Add(plotter.NewGrid())
	for i, column := range columns {
		lines, err := t.lines(column)
		if err != nil {
			return nil, err
		}
		for k, xys := range lines {
			line, err := plotter.NewLine(xys)
			if err != nil {
				return nil, err
			}
			line.Color, line.Width = colors[i%len(colors)], vg.Points(1.2)
			p.Add(line)
			if k == 0 {
				p.Legend.Add(column, line)
			}
		}
	}
	p.Y.Max *= 1.5 // for the names of the stages, and the legend below them
	if err := addStages(p, t.stages()); err != nil {
		return nil, err
	}
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
	p.Draw(vgdraw.Crop(vgdraw.New(canvas), margin, -margin, margin, -margin))
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	return out.Bytes(), err
}

// addStages draws a line where each stage begins, and its name upright beside it.
func addStages(p *plot.Plot, stages []stage) error {
	names := plotter.XYLabels{}
	for _, s := range stages {
		line, err := plotter.NewLine(plotter.XYs{{X: s.from, Y: 0}, {X: s.from, Y: p.Y.Max}})
		if err != nil {
			return err
		}
		line.Color, line.Dashes = color.Gray{150}, []vg.Length{vg.Points(2), vg.Points(2)}
		p.Add(line)
		names.XYs, names.Labels = append(names.XYs, plotter.XY{X: s.from, Y: p.Y.Max}), append(names.Labels, s.name)
	}
	labels, err := plotter.NewLabels(names)
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		style := &labels.TextStyle[i]
		style.Rotation, style.XAlign, style.YAlign, style.Color = math.Pi/2, text.XRight, text.YTop, color.Gray{90}
		style.Font = font.From(plot.DefaultFont, vg.Points(8))
	}
	p.Add(labels)
	return nil
}
