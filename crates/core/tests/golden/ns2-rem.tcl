# One queue's life in ns-2.35: ns ns2-rem.tcl; the link under test is the 1.5 Mbit/s one of golden-rem.tr.
foreach {k v} {gamma_ 0.02 phi_ 1.02 inw_ 0.5 pupdtime_ 0.0137 pbo_ 4 mean_pktsize_ 1000} {Queue/REM set $k $v}
set ns [new Simulator]; set f [open golden-rem.tr w]; $ns trace-all $f
set a [$ns node]; set b [$ns node]; set r [$ns node]; set d [$ns node]
$ns duplex-link $a $r 10Mb 2ms DropTail; $ns duplex-link $b $r 10Mb 3ms DropTail
$ns simplex-link $r $d 1.5Mb 20ms REM; $ns simplex-link $d $r 1.5Mb 20ms DropTail; $ns queue-limit $r $d 12
set t1 [$ns create-connection TCP/Reno $a TCPSink $d 0]; set t2 [$ns create-connection TCP/Reno $b TCPSink $d 1]
set f1 [$t1 attach-app FTP]; $ns at 0.0 "$f1 start"; set f2 [$t2 attach-app FTP]; $ns at 0.5 "$f2 start"
$ns at 5 {$ns flush-trace; close $f; exit 0}; $ns run
