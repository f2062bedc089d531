# One queue's life in ns-2.35: ns ns2-red.tcl; the link under test is the 1.5 Mbit/s one of golden-red.tr.
foreach {k v} {thresh_ 5 maxthresh_ 15 linterm_ 50 q_weight_ 0.002 gentle_ false bytes_ false queue_in_bytes_ false mean_pktsize_ 1000} {Queue/RED set $k $v}
set ns [new Simulator]; set f [open golden-red.tr w]; $ns trace-all $f
set a [$ns node]; set b [$ns node]; set r [$ns node]; set d [$ns node]
$ns duplex-link $a $r 10Mb 2ms DropTail; $ns duplex-link $b $r 10Mb 3ms DropTail; $ns duplex-link $r $d 1.5Mb 20ms RED
$ns queue-limit $r $d 25
set t1 [$ns create-connection TCP/Reno $a TCPSink $d 0]; set t2 [$ns create-connection TCP/Reno $b TCPSink $d 1]
set f1 [$t1 attach-app FTP]; $ns at 0.0 "$f1 start"; set f2 [$t2 attach-app FTP]; $ns at 0.5 "$f2 start"
$ns at 20 {$ns flush-trace; close $f; exit 0}; $ns run
