# Path and speed of the rover as its operator saw them, by who played it.
load "docs/plots/common.inc"
set terminal pngcairo size 1000,420 font "DejaVu Sans,11" background "#ffffff"
set multiplot layout 1,2
set title "Where it went"
set xlabel "x, m"
set ylabel "y, m"
set size ratio -1
set key top left
plot work . "/walk-through.csv" using (column(4) == column(4) ? column(2) : NaN):3 with lines ls 1 title "hardware", \
     work . "/walk-through.csv" using (column(5) == column(5) ? column(2) : NaN):3 with lines ls 2 title "proxy"
set title "How fast"
set size noratio
set xlabel "time, s"
set ylabel "speed, m/s"
set yrange [-0.1:0.55]
plot work . "/walk-through.csv" using 1:4 with lines ls 1 title "hardware", \
     work . "/walk-through.csv" using 1:5 with lines ls 2 title "proxy"
unset multiplot
