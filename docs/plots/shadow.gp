# Hardware and proxy side by side: ratios of some residuals to their tolerances, and the confidence that comes of them.
load "docs/plots/common.inc"
set terminal pngcairo size 1000,560 font "DejaVu Sans,11" background "#ffffff"
set multiplot layout 2,1
set xrange [0:36]
set lmargin 9
set rmargin 2
set bmargin 1
set tmargin 2.5
set title "K10 and its proxy on the same commands, 0.4 m/s and 0.1 rad/s; a wheel of the proxy is blocked for 12 s"
set ylabel "residual / tolerance"
set yrange [0.002:30]
set logscale y
set format x ""
set key top left horizontal noenhanced
set object 1 rectangle from 12,graph 0 to 24,graph 1 fillstyle solid 1 noborder fillcolor rgb "#f3ece0" behind
set arrow 1 from 25,graph 0 to 25,graph 1 nohead dashtype 2 linecolor rgb "#777777"
set arrow 2 from 0,1 to 36,1 nohead linecolor rgb "#999999"
set arrow 3 from 0,2 to 36,2 nohead linecolor rgb "#999999"
set label 1 "degraded above 1, diverged above 2" at 35.8,3.2 right textcolor rgb "#555555"
plot for [k = 3:7] work . "/shadow.csv" using 1:(column(k)) with lines ls (k - 2) title columnheader(k)
unset title
unset logscale y
unset arrow 2
unset arrow 3
unset label 1
set tmargin 1
set bmargin 3.5
set format x "%g"
set format y "%g"
set xlabel "time, s"
set ylabel "confidence"
set yrange [0:1.05]
set arrow 2 from 0,0.6 to 36,0.6 nohead linecolor rgb "#999999"
set arrow 3 from 0,0.135 to 36,0.135 nohead linecolor rgb "#999999"
set label 2 "blocked" at 12.2,0.95
set label 3 "mended, and brought together" at 25.2,0.3
set label 4 "degraded below" at 0.2,0.65 textcolor rgb "#555555"
set label 5 "diverged below" at 0.2,0.185 textcolor rgb "#555555"
plot work . "/shadow.csv" using 1:2 with lines ls 6 notitle
unset multiplot
