# The dumbbell of the race for ns-2: ns dumbbell.tcl FLOWS SECONDS COUNT
#
# N Reno flows from one shared host to another share N Mbit/s behind RED; no trace files. With COUNT 1 a queue
# monitor counts what the bottleneck sends and drops, which costs time; with 0 nothing but the flows runs.
# Prints name=value: CPU seconds of the run phase alone, packets in order, and what was counted.
lassign $argv n seconds count

# Headers that nobody here uses would be part of every packet.
remove-all-packet-headers
add-packet-header IP TCP Flags

Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 1000
foreach {name value} [list thresh_ [expr {1.0 * $n}] maxthresh_ [expr {3.0 * $n}] linterm_ 10 q_weight_ 0.002 \
		gentle_ true bytes_ false queue_in_bytes_ false mean_pktsize_ 1040] {
	Queue/RED set $name $value
}

# What Linux has counted for this process, in seconds, to the nanosecond.
proc cpu {} {
	set file [open /proc/self/schedstat]
	set ns [lindex [read $file] 0]
	close $file
	return [expr {$ns * 1e-9}]
}

set ns [new Simulator]
foreach node {a R1 R2 b} { set $node [$ns node] }
set ample [expr {8 * $n > 100000 ? 8 * $n : 100000}]
foreach {from to factor delay queue limit} [list \
		$a $R1 10 7.5ms DropTail $ample  $R1 $a 10 7.5ms DropTail $ample \
		$R1 $R2 1 10ms RED [expr {8 * $n}]  $R2 $R1 1 10ms DropTail $ample \
		$R2 $b 10 7.5ms DropTail $ample  $b $R2 10 7.5ms DropTail $ample] {
	$ns simplex-link $from $to [expr {$factor * $n * 1e6}] $delay $queue
	$ns queue-limit $from $to $limit
}
if {$count} { set monitor [$ns monitor-queue $R1 $R2 ""] }

set spread [expr {$n < 1000 ? 0.001 : 1.0 / $n}]
for {set i 0} {$i < $n} {incr i} {
	set sender [new Agent/TCP/Reno]
	set sink($i) [new Agent/TCPSink]
	$ns attach-agent $a $sender
	$ns attach-agent $b $sink($i)
	$ns connect $sender $sink($i)
	set source [new Application/FTP]
	$source attach-agent $sender
	$ns at [expr {$spread * $i}] "$source start"
}

proc finish {} {
	global n sink count monitor began
	set took [expr {[cpu] - $began}]
	set bytes 0.0
	for {set i 0} {$i < $n} {incr i} { set bytes [expr {$bytes + [$sink($i) set bytes_]}] }
	puts -nonewline [format "cpu_s=%.6f in_order=%.0f" $took [expr {$bytes / 1040}]]
	if {$count} {
		foreach {name field} {arrived parrivals_ dropped pdrops_ packets pdepartures_} {
			puts -nonewline [format " %s=%.0f" $name [$monitor set $field]]
		}
	}
	puts ""
	exit 0
}
$ns at 0.0 "set began \[cpu\]"
$ns at $seconds finish
$ns run
