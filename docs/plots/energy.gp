# Greatest energy error within each second, over 100 s at 1 ms, for each integrator. Left a pendulum, right a double pendulum.
load "docs/plots/common.inc"
set multiplot layout 1,2
set logscale y
set format y "10^{%T}"
set yrange [1e-15:1]
set ytics 1e-15,1000
set xrange [0:100]
set xlabel "time, s"
set key off
set bmargin 3.5
array integrator[4] = ["euler", "midpoint", "rk4", "adaptive"]
array style[4] = [2, 1, 3, 4]
do for [scene in "pendulum double-pendulum"] {
    set title (scene eq "pendulum" ? "pendulum from 90°, step 1 ms" : "double pendulum, step 1 ms")
    set ylabel (scene eq "pendulum" ? "energy error / m g L" : "")
    set label 1 "euler" at 4,(scene eq "pendulum" ? 7e-3 : 2e-1) textcolor ls 2
    set label 2 "midpoint (default)" at 4,2e-6 textcolor ls 1
    set label 3 "rk4" at 4,(scene eq "pendulum" ? 5e-12 : 2e-10) textcolor ls 3
    set label 4 "adaptive, tolerance 1e-9" at 30,(scene eq "pendulum" ? 1.5e-13 : 2e-14) textcolor ls 4
    plot for [i = 1:4] sprintf("%s/%s-%s.csv", work, scene, integrator[i]) using 1:2 with lines ls style[i]
}
unset multiplot
