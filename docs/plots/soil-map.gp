# Nine wheels side by side over soil whose kphi is a random field: how deep each stands, from above, and that of the middle one.
load "docs/plots/common.inc"
set terminal pngcairo size 1000,520 font "DejaVu Sans,11" background "#ffffff"
set multiplot
set size 1,0.54
set origin 0,0.46
set title "nine wheels of 6.5 kg over random soil, from above"
set ylabel "y, m" offset 1
set xrange [-5:5]
set yrange [-2:2]
set xtics 1
set ytics 1
set key off
set lmargin at screen 0.07
set rmargin at screen 0.87
set palette defined (0 "#0b3c5d", 1 "#2a9d8f", 2 "#e9c46a", 3 "#c0392b")
set cblabel "sinkage, mm"
set cbrange [10:40]
plot for [k = 0:8] work . "/soil-map.csv" every ::12 using (column(2 + 2 * k) - 5):(0.4 * (k - 4)):(1e3 * column(3 + 2 * k)) with lines lw 9 lc palette
set size 1,0.48
set origin 0,0
unset title
set xlabel "x, m"
set ylabel "sinkage, mm" offset 1
set yrange [10:40]
set ytics 10
set key top left
plot work . "/soil-map.csv" every ::12 using ($10 - 5):(1e3 * $11) with lines ls 1 title "the middle wheel", \
     18.73 with lines lc rgb "#888888" dt 2 title "lunar soil without the map"
unset multiplot
