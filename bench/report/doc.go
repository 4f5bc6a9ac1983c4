// Package report renders reports of package bench for people: plots as SVG, one self-contained HTML page, and a folder with
// every format.
//
//	files, err := report.WriteDir("out", bench.NewReport(results...))
//
// Plots and page follow the reader's choice of light or dark, load nothing and run no script. All figures are the report's
// own, by way of Result.Tables; a result that is partial or invalid says so in each of its plots.
//
// The plots are drawn here and not by a chart library: those at hand have no axis that goes by nines, none that is
// logarithmic, no marks across time and no intervals around bars, and fix their colours when they draw.
package report
