# The network and load of highspeed.toml, for ns-2, whose packets have only the headers that are needed: with all of them it takes twice as long.
remove-all-packet-headers
add-packet-header IP TCP Flags
set simulator [new Simulator]
proc link {one other rate delay} {
    global simulator
    $simulator duplex-link $one $other $rate $delay DropTail
    $simulator queue-limit $one $other 3000
    $simulator queue-limit $other $one 3000
}
set left [$simulator node]
set right [$simulator node]
link $left $right 800Mb 48ms
for {set flow 0} {$flow < 4} {incr flow} {
    set from [$simulator node]
    set to [$simulator node]
    link $from $left 8Gb 1ms
    link $right $to 8Gb 1ms
    set source [new Agent/TCP/Sack1]
    $source set packetSize_ 1460
    $source set window_ 2200
    set sink [new Agent/TCPSink/Sack1]
    $simulator attach-agent $from $source
    $simulator attach-agent $to $sink
    $simulator connect $source $sink
    set file [new Application/FTP]
    $file attach-agent $source
    $simulator at [expr 0.1 * $flow] "$file start"
    lappend sources $source
}
$simulator at [lindex $argv 0] {
    set acknowledged 0
    foreach source $sources { incr acknowledged [$source set ack_] }
    puts "packets $acknowledged"
    exit 0
}
$simulator run
