# A row of nine cubes between two fingers that push with 100 N: how far the row sags, and how little it moves after that.
load "docs/plots/common.inc"
set multiplot layout 1,2
set title "nine cubes of 1 kg between two fingers, after 100 s"
set xlabel "place along the row, m"
set ylabel "below where it began, µm" offset 1
set xrange [-0.5:0.5]
set yrange [45:0]
set xtics 0.2
set boxwidth 0.085
set style fill solid 0.85 noborder
set key off
plot work . "/grasp-end.csv" using 1:2 with boxes lc rgb "#0072b2"
set title "drift since the first second"
set xlabel "time, s"
set ylabel "m"
set xrange [0:100]
set yrange [1e-16:1e-6]
set logscale y
set format y "10^{%T}"
set ytics 100
set xtics 20
set label 1 "1 nm" at 3,2.2e-9 textcolor rgb "#777777"
set arrow 1 from 0,1e-9 to 100,1e-9 nohead lc rgb "#aaaaaa" dt 2
set label 2 "middle cube, down" at 40,6e-12 textcolor ls 1
set label 3 "fingers, together" at 62,2e-14 textcolor ls 2
plot work . "/grasp.csv" using 1:2 with lines ls 1, work . "/grasp.csv" using 1:3 with lines ls 2
unset multiplot
