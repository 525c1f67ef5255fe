# The default scene, from above: where the rover's four wheels went in 80 s, how high the ground was there, and the rocks on the way.
load "docs/plots/common.inc"
set terminal pngcairo size 1000,520 font "DejaVu Sans,11" background "#ffffff"
set multiplot
set size 0.56,1
set origin 0,0
set title "K10 in its crater, from above: tracks of the four wheels, 80 s"
set size ratio -1
set xlabel "x, m"
set ylabel "y, m"
set xrange [-6.5:6.5]
set yrange [-6.5:6.5]
set xtics 2
set ytics 2
set palette defined (0 "#0b3c5d", 1 "#2a9d8f", 2 "#e9c46a", 3 "#c0392b")
set cblabel "height of the wheel's foot, m"
set cbrange [-0.08:0.16]
set cbtics 0.04
set key off
rock = "#c8c2b8"
# Rock that is part of the ground, where it stands out of it.
set object 1 circle at 1.8,-4.3 size 0.27 fillstyle solid noborder fillcolor rgb rock
set object 2 ellipse at 3.3,-4.1 size 1,0.6 angle 40 fillstyle solid noborder fillcolor rgb rock
set object 3 polygon from 5.01,-1.37 to 4.24,-1.82 to 4.59,-2.43 to 5.36,-1.98 to 5.01,-1.37 fillstyle solid noborder fillcolor rgb rock
set object 4 ellipse at 4.75,1.2 size 0.96,0.16 angle 80 fillstyle solid noborder fillcolor rgb rock
set object 5 circle at 2.9,4.1 size 0.48 fillstyle solid noborder fillcolor rgb rock
set object 6 ellipse at 0,5.2 size 1.4,1.2 fillstyle solid noborder fillcolor rgb rock
set object 7 polygon from -3.09,4.16 to -2.74,3.81 to -3.31,3.24 to -3.66,3.59 to -3.09,4.16 fillstyle solid noborder fillcolor rgb rock
set object 8 circle at -4.7,1.6 size 0.5 fillstyle solid noborder fillcolor rgb rock
set object 9 circle at -4.9,-1.3 size 0.22 fillstyle solid noborder fillcolor rgb rock
set object 10 polygon from -3.5,-4.2 to -2.7,-4.2 to -3.1,-3.5 to -3.5,-4.2 fillstyle solid noborder fillcolor rgb rock
plot for [k = 0:3] work . "/default.csv" using (column(2 + 3 * k)):(column(3 + 3 * k)):(column(4 + 3 * k) - 0.18) with lines lw 2 lc palette, \
     for [k = 0:14] work . "/stones-start.csv" using (column(2 + 2 * k)):(column(3 + 2 * k)) with points pt 6 ps 1.1 lw 1.5 lc rgb "#333333", \
     for [k = 0:14] work . "/stones-end.csv" using (column(2 + 2 * k)):(column(3 + 2 * k)) with points pt 7 ps 1.1 lc rgb "#333333"
unset object
set size noratio
set size 0.42,0.96
set origin 0.58,0
unset colorbox
set title "the body, and the rockers that carry it"
set xlabel "time, s"
set ylabel "angle, degrees" offset 1
set xrange [0:80]
set yrange [-15:15]
set xtics 20
set ytics 5
set key bottom left horizontal spacing 1.2
deg(x) = x * 180 / pi
tilt(x, y) = deg(acos(1 - 2 * (x * x + y * y)))
plot work . "/default.csv" using 1:(deg($16)) with lines ls 5 lw 1 title "left rocker", \
     work . "/default.csv" using 1:(tilt($14, $15)) with lines ls 1 lw 1.5 title "tilt of the body"
unset multiplot
