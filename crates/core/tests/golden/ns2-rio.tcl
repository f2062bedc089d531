# One queue's life in ns-2.35: ns ns2-rio.tcl; the link under test is the 1.5 Mbit/s one of rio.tr.
foreach {k v} {in_thresh_ 4 in_maxthresh_ 12 in_linterm_ 20 thresh_ 2 maxthresh_ 6 out_thresh_ 2 out_maxthresh_ 6 linterm_ 5 q_weight_ 0.05 gentle_ false wait_ true bytes_ false queue_in_bytes_ false mean_pktsize_ 1000 priority_method_ 1} {Queue/RED/RIO set $k $v}
set ns [new Simulator]; set f [open rio.tr w]; $ns trace-all $f
set r [$ns node]; set d [$ns node]
for {set i 0} {$i<6} {incr i} {set a($i) [$ns node]; $ns duplex-link $a($i) $r 10Mb ${i}ms DropTail}
$ns duplex-link $r $d 1.5Mb 20ms RED/RIO
$ns queue-limit $r $d 20
for {set i 0} {$i<6} {incr i} {set t($i) [$ns create-connection TCP/Reno $a($i) TCPSink $d [expr $i%2]]; set p($i) [$t($i) attach-app FTP]; $ns at 0.$i "$p($i) start"; $ns at [expr 8+$i*0.1] "$p($i) stop"; $ns at [expr 11+$i] "$p($i) start"}
$ns at 20 {$ns flush-trace; close $f; exit 0}; $ns run
