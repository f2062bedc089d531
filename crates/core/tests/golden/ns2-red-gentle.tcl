# One queue's life in ns-2.35: ns ns2-red-gentle.tcl; the link under test is the 1.5 Mbit/s one of red-gentle.tr.
foreach {k v} {thresh_ 3 maxthresh_ 9 linterm_ 10 q_weight_ 0.01 gentle_ true wait_ false bytes_ false queue_in_bytes_ false mean_pktsize_ 1000} {Queue/RED set $k $v}
set ns [new Simulator]; set f [open red-gentle.tr w]; $ns trace-all $f
set r [$ns node]; set d [$ns node]
for {set i 0} {$i<6} {incr i} {set a($i) [$ns node]; $ns duplex-link $a($i) $r 10Mb ${i}ms DropTail}
$ns duplex-link $r $d 1.5Mb 20ms RED
$ns queue-limit $r $d 25
for {set i 0} {$i<6} {incr i} {set t($i) [$ns create-connection TCP/Reno $a($i) TCPSink $d $i]; set p($i) [$t($i) attach-app FTP]; $ns at 0.$i "$p($i) start"}
$ns at 20 {$ns flush-trace; close $f; exit 0}; $ns run
