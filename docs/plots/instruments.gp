# What instruments say beside what is true, one small picture for each group: gnuplot -e work=... docs/plots/instruments.gp
set datafile separator ","
set datafile columnheaders
set terminal pngcairo size 900,380 font "DejaVu Sans,11" background "#ffffff"
set border linecolor rgb "#555555"
set tics textcolor rgb "#333333"
set grid linecolor rgb "#dddddd" linewidth 1
set style line 1 linecolor rgb "#0072b2" linewidth 2
set style line 2 linecolor rgb "#d55e00" linewidth 2
set style line 3 linecolor rgb "#009e73" linewidth 2
set style line 6 linecolor rgb "#444444" linewidth 1.5
set key top left

set output out . "/instrument-sun.png"
set xlabel "hours"
set ylabel "height of the Sun, deg"
set xrange [0:24]
plot work . "/sun-earth.csv" using (column(1) / 3600):2 with lines ls 1 title "Earth", \
     work . "/sun-mars.csv" using (column(1) / 3600):2 with lines ls 2 title "Mars", \
     work . "/sun-moon.csv" using (column(1) / 3600):2 with lines ls 6 title "Moon"

set output out . "/instrument-navsat.png"
set xlabel "east of the truth, m"
set ylabel "north, m"
set xrange [-15:15]
set yrange [-6:6]
plot work . "/fix-wall.csv" using 1:2 with points pt 7 ps 0.3 lc rgb "#d55e00" title "beside a wall", \
     work . "/fix-open.csv" using 1:2 with points pt 7 ps 0.3 lc rgb "#0072b2" title "in the open"

set output out . "/instrument-compass.png"
set xlabel "heading, deg"
set ylabel "error, deg"
set xrange [0:360]
set yrange [-25:25]
plot work . "/compass.csv" using 1:2 with points pt 7 ps 0.3 lc rgb "#0072b2" title "readings", \
     work . "/compass.csv" using 1:3 with lines ls 6 title "atan(h sin a / (H + h cos a))"

set output out . "/instrument-range.png"
set xlabel "s"
set ylabel "m"
set autoscale x
set yrange [0:8]
plot work . "/range-ultrasound.csv" using 1:2 with lines ls 2 title "ultrasound", \
     work . "/range-laser.csv" using 1:2 with lines ls 1 title "laser", \
     work . "/range-laser.csv" using 1:3 with lines ls 6 title "truth of the laser"

set output out . "/instrument-motor.png"
set xlabel "s"
set ylabel "A, and K above the start"
set autoscale y
plot work . "/motor.csv" using 1:2 with lines ls 1 title "current", \
     work . "/motor.csv" using 1:(column(3) - 293.15) with lines ls 2 title "temperature of the winding"

set output out . "/instrument-touch.png"
set xlabel "s"
set ylabel "N"
plot work . "/touch.csv" using 1:2 with lines ls 6 title "force on the wheel", \
     work . "/touch.csv" using 1:(20 * column(3)) with steps ls 2 title "closed, times 20 N"

set output out . "/instrument-spectrum.png"
set xlabel "wavelength, nm"
set ylabel "reflectance times cos(slant)"
plot work . "/spectrum.csv" using 1:3 with lines ls 6 title "truth", \
     work . "/spectrum.csv" using 1:2 with points pt 7 ps 0.6 lc rgb "#d55e00" title "one reading"
