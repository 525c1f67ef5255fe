# The default scene: the arm moves to its work pose, the tip of the double pendulum draws its path.
load "docs/plots/common.inc"
set multiplot
set size 0.55,1
set origin 0,0
set title "six-axis arm under PD drives"
set xlabel "time, s"
set ylabel "joint angle, degrees"
set xrange [0:1.5]
set yrange [-60:120]
set ytics 30
set key outside right center spacing 1.3
deg(x) = x * 180 / pi
plot for [k = 1:6] work . "/default.csv" using 1:(deg(column(k + 1))) with lines ls k title sprintf("joint%d", k)
set size 0.43,1
set origin 0.56,0
set title "double pendulum: path of the tip, 10 s"
set key off
set size ratio -1
set xlabel "x, m"
set ylabel "z, m"
set xrange [-2.1:2.1]
set yrange [-0.1:4.1]
set ytics 1
set xtics 1
tip_x(a, b) = -sin(a) - sin(a + b)
tip_z(a, b) = 2 - cos(a) - cos(a + b)
set label 1 "" at 0,2 point pointtype 7 pointsize 1.2 linecolor rgb "#444444" front
plot work . "/default.csv" using (tip_x($8, $9)):(tip_z($8, $9)) with lines ls 1 lw 1
unset multiplot
