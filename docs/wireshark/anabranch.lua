-- Shows anabranch in Wireshark and tshark: both forms of docs/wire.md, whose sections the comments name. Written from that page alone. README.md tells how to use it.
--
--   frame with a TCP header (sec. 1, 2)  ->  after all other dissectors, because SYNs and pure acknowledgements never reach one that is registered below TCP
--   UDP datagram (sec. 3)                ->  heuristics, or "Decode As"; only what is not encrypted
--
-- It runs in Lua 5.2 (Wireshark 4.0) and 5.4 (from 4.4), so it has no operators for bits. Packets are hostile: no byte is read before its place is checked.

local anabranch = Proto("anabranch", "Anabranch")
-- Looks at each frame with a TCP header.
local over_tcp = Proto("anabranch_tcp", "Anabranch in TCP")
-- Takes the content of connections with streams, so that no dissector of a port mistakes stream headers for its protocol.
local content_of = Proto("anabranch_content", "Anabranch content")

-- Fields ------------------------------------------------------------------------------------------------------------

local PATH_SEGMENTS = { [1] = "challenge", [2] = "response", [3] = "leave" }
local RECORDS = { [1] = "finish", [2] = "reset", [3] = "stop", [4] = "max stream data", [5] = "acknowledge each" }
local DATAGRAMS = { [1] = "initiation", [2] = "response", [3] = "cookie", [4] = "data", [5] = "reset" }

local f = {
    mse = ProtoField.bool("anabranch.mse", "Multistream enabled (MSE)"),
    plain = ProtoField.bool("anabranch.plain", "Plain TCP from here on"),
    version = ProtoField.uint8("anabranch.multistream.version", "Version"),
    streams = ProtoField.uint8("anabranch.multistream.streams", "Streams"),
    features = ProtoField.uint8("anabranch.multistream.features", "Features", base.HEX),
    paths = ProtoField.bool("anabranch.multistream.paths", "Several paths", 8, nil, 0x01),
    nonces = ProtoField.bool("anabranch.multistream.nonces", "Nonces", 8, nil, 0x02),
    many = ProtoField.bool("anabranch.multistream.many", "Many streams", 8, nil, 0x04),
    extents = ProtoField.bool("anabranch.multistream.extents", "Extents", 8, nil, 0x08),
    credit = ProtoField.uint8("anabranch.multistream.credit", "Initial credit, exponent of 2"),
    stream_id = ProtoField.uint16("anabranch.stream.id", "Stream (SID)"),
    ssn = ProtoField.uint24("anabranch.stream.ssn", "Stream sequence number (SSN)"),
    data = ProtoField.bytes("anabranch.stream.data", "Data"),
    data_len = ProtoField.uint32("anabranch.stream.len", "Bytes of data"),
    expected_id = ProtoField.uint16("anabranch.expected.id", "Stream (SID)"),
    expected_ssn = ProtoField.uint24("anabranch.expected.ssn", "Expected number (ESSN)"),
    delay = ProtoField.uint32("anabranch.expected.delay", "Delay of the acknowledgement, us"),
    ce = ProtoField.uint16("anabranch.expected.ce", "Segments with CE"),
    ect0 = ProtoField.uint16("anabranch.expected.ect0", "Segments with ECT(0)"),
    ect1 = ProtoField.uint16("anabranch.expected.ect1", "Segments with ECT(1)"),
    path_segment = ProtoField.uint8("anabranch.path.kind", "Path segment", base.DEC, PATH_SEGMENTS),
    path_token = ProtoField.bytes("anabranch.path.token", "Token"),
    extent_start = ProtoField.uint16("anabranch.extent.start", "Begin"),
    extent_len = ProtoField.uint16("anabranch.extent.len", "Length"),
    part = ProtoField.bool("anabranch.extent.part", "Part of a segment that was split"),
    record = ProtoField.uint8("anabranch.record.kind", "Record", base.DEC, RECORDS),
    record_id = ProtoField.uint16("anabranch.record.id", "Stream (SID)"),
    record_ssn = ProtoField.uint24("anabranch.record.ssn", "Number (SSN)"),
    record_code = ProtoField.uint16("anabranch.record.code", "Error code of the application"),
    record_over = ProtoField.uint8("anabranch.record.over", "Streams that are over, modulo 256"),
    record_limit = ProtoField.uint32("anabranch.record.limit", "Limit in bytes, modulo 2^32"),
    record_each = ProtoField.uint8("anabranch.record.segments", "Segments per acknowledgement"),
    record_delay = ProtoField.uint32("anabranch.record.delay", "Longest delay, us"),
    datagram = ProtoField.uint8("anabranch.datagram", "Datagram", base.DEC, DATAGRAMS),
    sender = ProtoField.uint32("anabranch.sender", "Sender's index", base.HEX),
    receiver = ProtoField.uint32("anabranch.receiver", "Receiver's index", base.HEX),
    ephemeral = ProtoField.bytes("anabranch.noise.ephemeral", "Ephemeral public key"),
    static = ProtoField.bytes("anabranch.noise.static", "Static public key, encrypted"),
    payload = ProtoField.bytes("anabranch.noise.payload", "Payload, encrypted"),
    mac1 = ProtoField.bytes("anabranch.mac1", "mac1"),
    mac2 = ProtoField.bytes("anabranch.mac2", "mac2"),
    has_cookie = ProtoField.bool("anabranch.has_cookie", "With a cookie"),
    cookie = ProtoField.bytes("anabranch.cookie", "Cookie"),
    cookie_mac = ProtoField.bytes("anabranch.cookie.mac", "Its MAC"),
    path = ProtoField.uint8("anabranch.data.path", "Path"),
    grease = ProtoField.uint16("anabranch.data.grease", "Grease", base.HEX),
    counter = ProtoField.uint64("anabranch.data.counter", "Counter"),
    sealed = ProtoField.bytes("anabranch.data.sealed", "Encrypted"),
    sealed_len = ProtoField.uint32("anabranch.data.len", "Bytes of plain text"),
    tag = ProtoField.bytes("anabranch.tag", "Tag"),
    reset_token = ProtoField.bytes("anabranch.reset.token", "Token"),
    answers = ProtoField.framenum("anabranch.answers", "Answers the initiation in", base.NONE, frametype.RESPONSE),
}

local fields = {}
for _, field in pairs(f) do
    fields[#fields + 1] = field
end
anabranch.fields = fields

local e = {
    option = ProtoExpert.new("anabranch.bad_option", "A TCP option does not fit: the segment is dropped", expert.group.MALFORMED, expert.severity.ERROR),
    unknown = ProtoExpert.new("anabranch.unknown_option", "An option 4d53 of unknown length or kind, which is skipped", expert.group.PROTOCOL, expert.severity.NOTE),
    version = ProtoExpert.new("anabranch.bad_version", "Not version 2: no streams", expert.group.PROTOCOL, expert.severity.WARN),
    request = ProtoExpert.new("anabranch.half_request", "MSE or the option is missing, or the number is 0: no streams", expert.group.PROTOCOL, expert.severity.WARN),
    grant = ProtoExpert.new("anabranch.bad_grant", "Granted more than was requested", expert.group.PROTOCOL, expert.severity.ERROR),
    short = ProtoExpert.new("anabranch.short_content", "No data after the stream header: the segment is dropped", expert.group.MALFORMED, expert.severity.ERROR),
    records = ProtoExpert.new("anabranch.bad_records", "Not one to four records: the segment is dropped", expert.group.MALFORMED, expert.severity.ERROR),
    record = ProtoExpert.new("anabranch.bad_record", "No such record: the segment is dropped", expert.group.MALFORMED, expert.severity.ERROR),
    stream = ProtoExpert.new("anabranch.bad_stream", "There are not so many streams", expert.group.PROTOCOL, expert.severity.WARN),
    no_mse = ProtoExpert.new("anabranch.no_mse", "Without MSE in a connection with streams", expert.group.PROTOCOL, expert.severity.WARN),
    stray_mse = ProtoExpert.new("anabranch.stray_mse", "MSE in a connection without streams", expert.group.PROTOCOL, expert.severity.WARN),
    extent = ProtoExpert.new("anabranch.bad_extent", "The content is none of the extent", expert.group.PROTOCOL, expert.severity.WARN),
    no_extent = ProtoExpert.new("anabranch.no_extent", "Content without an extent, although both ends have them: it counts as lost", expert.group.PROTOCOL, expert.severity.WARN),
    path = ProtoExpert.new("anabranch.bad_path_segment", "A path segment has ACK and MSE alone, no other option and no content", expert.group.PROTOCOL, expert.severity.WARN),
    length = ProtoExpert.new("anabranch.bad_length", "Too short or too long for its type: it is dropped", expert.group.MALFORMED, expert.severity.ERROR),
    header = ProtoExpert.new("anabranch.bad_header", "Bytes that are zero are not: it is dropped", expert.group.MALFORMED, expert.severity.ERROR),
    path_number = ProtoExpert.new("anabranch.bad_path", "There are paths 0 to 15: it is dropped", expert.group.MALFORMED, expert.severity.ERROR),
    later = ProtoExpert.new("anabranch.later_version", "Reserved for later versions", expert.group.PROTOCOL, expert.severity.NOTE),
    cut = ProtoExpert.new("anabranch.cut", "The capture does not have all of it", expert.group.UNDECODED, expert.severity.NOTE),
}
local experts = {}
for _, one in pairs(e) do
    experts[#experts + 1] = one
end
anabranch.experts = experts

-- TCP form ----------------------------------------------------------------------------------------------------------

local tcp_headers, tcp_payloads = Field.new("tcp"), Field.new("tcp.payload")
local tcp_flags = Field.new("tcp.flags")
local tcp_streams, tcp_lens = Field.new("tcp.stream"), Field.new("tcp.len")
local icmp, icmpv6 = Field.new("icmp"), Field.new("icmpv6")

-- By the number that Wireshark gives a TCP connection; and what is known of each frame, so that a second look says the same.
local connections, frames = {}, {}
-- UDP: the frame of an initiation by its sender's index; and indices that were seen in connections of ours.
local initiations, indices, datagram_frames = {}, {}, {}

function anabranch.init()
    connections, frames = {}, {}
    initiations, indices, datagram_frames = {}, {}, {}
end

-- Bits of the low byte of the flags, and of the high one.
local FIN, SYN, RST, ACK, MSE = 1, 2, 4, 16, 2

local function has(number, bit_value)
    return math.floor(number / bit_value) % 2 == 1
end

-- A range of a field; nil if the capture ends before it does.
local function range_of(info)
    local there, range = pcall(function() return info.range end)
    return there and range or nil
end

-- The lengths of the first five options of the table in sec. 1.2; SACK's is 2 + 8n.
local LENGTHS = { [2] = 4, [3] = 3, [4] = 2, [8] = 10 }

-- Reads the options: each is called with its range. False if the segment is dropped because of one.
local function each_option(header, from, to, visit)
    local at = from
    while at < to do
        local kind = header(at, 1):uint()
        if kind == 0 then
            return true
        elseif kind == 1 then
            at = at + 1
        else
            if at + 2 > to then
                return false, header(at, to - at)
            end
            local len = header(at + 1, 1):uint()
            if len < 2 or at + len > to then
                return false, header(at, to - at)
            end
            local bad = LENGTHS[kind] and LENGTHS[kind] ~= len or kind == 5 and (len < 10 or (len - 2) % 8 ~= 0)
            if bad then
                return false, header(at, len)
            end
            visit(kind, header(at, len))
            at = at + len
        end
    end
    return true
end

-- The header with its options; nil if it is none, or not all there. Wireshark's item may go on over the content.
local function header_of(range)
    if not range or range:len() < 20 then
        return nil
    end
    local len = math.floor(range(12, 1):uint() / 16) * 4
    return len >= 20 and len <= range:len() and range(0, len) or nil
end

-- What a segment says, as tables of ranges and numbers; nothing is shown yet.
local function read_header(header)
    local high, low = header(12, 1):uint(), header(13, 1):uint()
    local segment = {
        seq = header(4, 4):uint(), flags = header(12, 2),
        mse = has(high, MSE), syn = has(low, SYN), ack = has(low, ACK), rst = has(low, RST), fin = has(low, FIN),
        others = 0, unknown = {},
    }
    segment.fits, segment.bad = each_option(header, 20, header:len(), function(kind, option)
        if kind ~= 253 or option:len() < 4 or option(2, 2):uint() ~= 0x4d53 then
            segment.others = segment.others + 1
            return
        end
        segment.ours = true
        local len = option:len()
        if segment.syn then
            if len == 8 then
                segment.multistream = option
            else
                segment.unknown[#segment.unknown + 1] = option
            end
        elseif len == 8 or len == 10 or len == 16 then
            segment.expected = option
        elseif len == 13 and PATH_SEGMENTS[option(4, 1):uint()] then
            segment.path = option
        elseif len == 9 and option(4, 1):uint() == 4 then
            segment.extent = option
        else
            segment.unknown[#segment.unknown + 1] = option
        end
    end)
    return segment
end

-- What a SYN requests or grants (sec. 2.1); nil if nothing.
local function offer_of(segment)
    local option = segment.multistream
    if not (segment.mse and option) or option(4, 1):uint() ~= 2 or option(5, 1):uint() == 0 then
        return nil
    end
    return { streams = option(5, 1):uint(), features = option(6, 1):uint() }
end

-- Moves the connection on by a segment, and says what the segment is in it: "syn", "streams", "plain", "turns plain", or nil if it is none of ours.
local function follow(connection, segment, from, frame)
    if segment.syn then
        local offer = offer_of(segment)
        connection.initial[from] = segment.seq
        local known = { mode = "syn", ours = segment.multistream ~= nil, offer = offer }
        if segment.ack then
            known.requested, known.saw_request = connection.request, connection.saw_request
            -- A retransmitted answer may grant nothing; the grant counts nevertheless.
            connection.grant, connection.saw_answer = connection.grant or offer, true
        else
            -- So may a retransmitted SYN ask for nothing.
            connection.request, connection.saw_request = connection.request or offer, true
        end
        return known
    end
    if segment.rst and not connection.mode then
        return {}
    end
    local request, grant = connection.request, connection.grant
    if not connection.mode then
        local refused = connection.saw_request and not request or connection.saw_answer and not grant
        if refused then
            connection.mode = "refused"
        elseif request or grant then
            -- The segment that acknowledges the SYN-ACK decides, and all that follow are like it.
            connection.mode = segment.mse and "streams" or "plain"
            connection.decided = frame
        elseif segment.mse and segment.ours and segment.fits then
            -- The capture began later: nobody else has both.
            connection.mode = "streams"
        end
    end
    local known = { mode = connection.mode, decided = connection.decided == frame, initial = connection.initial[from] }
    if request and grant then
        known.extents = has(request.features, 8) and has(grant.features, 8)
        known.streams = grant.streams
    end
    return known
end

local function show_multistream(tree, option)
    local branch = tree:add(anabranch, option, "Multistream")
    branch:add(f.version, option(4, 1))
    branch:add(f.streams, option(5, 1))
    local features = branch:add(f.features, option(6, 1))
    for _, feature in ipairs({ f.paths, f.nonces, f.many, f.extents }) do
        features:add(feature, option(6, 1))
    end
    branch:add(f.credit, option(7, 1))
    if option(4, 1):uint() ~= 2 then
        branch:add_proto_expert_info(e.version)
    end
    return branch
end

local function show_expected(tree, option)
    local sid, ssn, len = option(4, 1):uint(), option(5, 3):uint(), option:len()
    local branch = tree:add(anabranch, option, string.format("Expected: stream %d, number %d", sid, ssn))
    branch:add(f.expected_id, option(4, 1))
    branch:add(f.expected_ssn, option(5, 3))
    if len >= 10 then
        branch:add(f.delay, option(8, 2), option(8, 2):uint() * 8)
    end
    if len == 16 then
        branch:add(f.ce, option(10, 2))
        branch:add(f.ect0, option(12, 2))
        branch:add(f.ect1, option(14, 2))
    end
    return string.format("expects %d #%d", sid, ssn)
end

local function show_path(tree, option, segment, len)
    local name = PATH_SEGMENTS[option(4, 1):uint()]
    local branch = tree:add(anabranch, option, "Path segment: " .. name)
    branch:add(f.path_segment, option(4, 1))
    branch:add(f.path_token, option(5, 8))
    if segment.others > 0 or segment.expected or segment.extent or len > 0 or not segment.ack or segment.rst or segment.fin then
        branch:add_proto_expert_info(e.path)
    end
    return name
end

local function show_record(tree, record)
    local kind = record(0, 1):uint()
    local name = RECORDS[kind]
    local branch = tree:add(anabranch, record, "Record: " .. (name or "unknown"))
    branch:add(f.record, record(0, 1))
    if not name then
        branch:add_proto_expert_info(e.record)
        return "unknown record"
    elseif kind == 5 then
        branch:add(f.record_each, record(1, 1))
        branch:add(f.record_delay, record(2, 2), record(2, 2):uint() * 8)
        return name
    end
    -- The page stands in the number, or in the code of max stream data; in the TCP form it is 0.
    local page = kind == 4 and record(3, 1):uint() % 16 or record(4, 1):uint() % 16
    local sid = page * 256 + record(1, 1):uint()
    branch:add(f.record_id, record(1, 1), sid)
    if kind == 4 then
        branch:add(f.record_over, record(2, 1))
        branch:add(f.record_limit, record(4, 4))
    else
        if kind ~= 1 then
            branch:add(f.record_code, record(2, 2))
        end
        branch:add(f.record_ssn, record(5, 3))
    end
    return string.format("%s of %d", name, sid)
end

-- The content with its stream header (sec. 1.3). `len` is its length in the packet, of which the capture may have less; `payload` is what it has, or nil.
local function show_content(tree, payload, len, known)
    local there = payload and payload:len() or 0
    if len < 5 then
        tree:add_proto_expert_info(e.short)
        return "short content"
    end
    if there < 4 then
        tree:add_proto_expert_info(e.cut)
        return "stream header not captured"
    end
    local sid, ssn = payload(0, 1):uint(), payload(1, 3):uint()
    local branch = tree:add(anabranch, payload, string.format("Stream %d, number %d: %d bytes", sid, ssn, len - 4))
    local id = branch:add(f.stream_id, payload(0, 1))
    branch:add(f.ssn, payload(1, 3))
    branch:add(f.data_len, payload(0, 4), len - 4):set_generated()
    if known.streams and sid > known.streams then
        id:add_proto_expert_info(e.stream)
    end
    if sid > 0 then
        if there > 4 then
            branch:add(f.data, payload(4))
        end
        return string.format("stream %d #%d, %d bytes", sid, ssn, len - 4)
    end
    if (len - 4) % 8 ~= 0 or len > 36 then
        branch:add_proto_expert_info(e.records)
        return string.format("control #%d, malformed", ssn)
    end
    local names = {}
    for at = 4, there - 8, 8 do
        names[#names + 1] = show_record(branch, payload(at, 8))
    end
    if there < len then
        branch:add_proto_expert_info(e.cut)
    end
    return string.format("control #%d: %s", ssn, table.concat(names, ", "))
end

-- How a segment with an extent is to be read (sec. 2.7): its content, of which length, and whether its first byte is the first of the extent.
local function within_extent(tree, segment, payload, len, known)
    local option = segment.extent
    local start, most = option(5, 2):uint(), option(7, 2):uint()
    local branch = tree:add(anabranch, option, string.format("Extent: %d bytes from %d", most, start))
    branch:add(f.extent_start, option(5, 2))
    branch:add(f.extent_len, option(7, 2))
    -- Without the SYN only the length tells a first part from others.
    local skipped = known.initial and (segment.seq - known.initial - start) % 65536 or (len < most and 1 or 0)
    if skipped == 0 and len == most then
        return payload, len, true
    elseif skipped == 0 and len > most then
        -- Joined with what follows, which arrives again.
        branch:add_proto_expert_info(e.extent)
        return payload and payload(0, math.min(most, payload:len())), most, true
    end
    if known.initial and skipped + len > most then
        branch:add_proto_expert_info(e.extent)
    end
    branch:add(f.part, option(5, 4), true):set_generated()
    return payload, len, skipped == 0 and known.initial ~= nil
end

local function show_syn(branch, segment, known, words)
    if segment.multistream then
        local option = show_multistream(branch, segment.multistream)
        words[#words + 1] = string.format("%s %d streams", segment.ack and "grants" or "requests", segment.multistream(5, 1):uint())
        if segment.ack and known.offer and known.saw_request then
            if not known.requested or known.offer.streams > known.requested.streams then
                option:add_proto_expert_info(e.grant)
            end
        end
    end
    if not known.offer then
        branch:add_proto_expert_info(e.request)
    end
end

local function show_segment(tree, header, segment, payload, len, known)
    local branch = tree:add(anabranch, payload or header, "Anabranch, TCP form")
    branch:add(f.mse, segment.flags, segment.mse)
    local words = {}
    if not segment.fits then
        branch:add(anabranch, segment.bad, "Options"):add_proto_expert_info(e.option)
        branch:append_text(": malformed options")
        return "malformed options"
    end
    for _, option in ipairs(segment.unknown) do
        branch:add(anabranch, option, "Unknown option"):add_proto_expert_info(e.unknown)
    end
    if known.mode == "syn" then
        show_syn(branch, segment, known, words)
    elseif known.mode == "streams" then
        if not segment.mse and not (segment.rst and len == 0) then
            branch:add_proto_expert_info(e.no_mse)
        end
        if segment.expected then
            words[#words + 1] = show_expected(branch, segment.expected)
        end
        if segment.path then
            words[#words + 1] = show_path(branch, segment.path, segment, len)
        end
        local first = true
        if segment.extent then
            payload, len, first = within_extent(branch, segment, payload, len, known)
        elseif known.extents and len > 0 then
            branch:add_proto_expert_info(e.no_extent)
        end
        if segment.mse and len > 0 then
            if first then
                table.insert(words, 1, show_content(branch, payload, len, known))
            else
                words[#words + 1] = "a later part of a segment"
            end
        end
    else
        if known.decided then
            branch:add(f.plain, segment.flags, true):set_generated()
            words[#words + 1] = "plain TCP from here on"
        end
        if segment.mse then
            branch:add_proto_expert_info(e.stray_mse)
        end
        if segment.extent then
            within_extent(branch, segment, payload, len, known)
            branch:add_proto_expert_info(e.extent)
        end
    end
    local text = table.concat(words, "; ")
    if text ~= "" then
        branch:append_text(": " .. text)
    end
    return text
end

-- One TCP header of a frame: `number` is the connection's, `len` the length of its content.
local function dissect_segment(pinfo, tree, key, header, payload, number, len)
    local segment = read_header(header)
    local known = frames[key]
    if not known then
        local connection = connections[number] or { initial = {} }
        connections[number] = connection
        local from = tostring(pinfo.src) .. " " .. header(0, 2):uint()
        known = follow(connection, segment, from, pinfo.number)
        frames[key] = known
        if not connection.taken and (known.mode == "streams" or known.mode == "syn" and known.offer and segment.ack) then
            connection.taken = true
            pinfo.conversation = content_of
        end
    end
    local is_shown = known.mode == "streams" or known.mode == "syn" and (segment.mse or segment.ours)
        or (known.mode == "plain" or known.mode == "refused") and (known.decided or segment.mse or segment.ours)
    if not is_shown then
        return
    end
    local text = show_segment(tree, header, segment, payload, len, known)
    if known.mode == "streams" or known.offer then
        pinfo.cols.protocol = "MFast"
    end
    if text ~= "" then
        pinfo.cols.info:append(" | " .. text)
    end
end

function over_tcp.dissector(_, pinfo, tree)
    local headers = { tcp_headers() }
    -- What an ICMP message quotes was sent by somebody else at another time.
    if #headers == 0 or icmp() or icmpv6() then
        return
    end
    local payloads, numbers, lens = { tcp_payloads() }, { tcp_streams() }, { tcp_lens() }
    for at, info in ipairs(headers) do
        local header = header_of(range_of(info))
        if header and numbers[at] and lens[at] then
            local payload
            for _, one in ipairs(payloads) do
                if one.offset == info.offset + header:len() then
                    payload = range_of(one)
                end
            end
            dissect_segment(pinfo, tree, pinfo.number .. "/" .. at, header, payload, numbers[at].value, lens[at].value)
        end
    end
end

function content_of.dissector(tvb)
    -- A connection whose SYNs agree on streams may still turn out to be plain.
    local flags = { tcp_flags() }
    return #flags > 0 and has(flags[#flags].value, 0x200) and tvb:len() or 0
end

register_postdissector(over_tcp)

-- Sealed form -------------------------------------------------------------------------------------------------------

-- Sec. 3.1. The least length of each type: a hello with one cipher and a SYN without options, a reply without a token, data with four bytes of plain text.
local LEAST = { [1] = 8 + 32 + 48 + (1 + 1 + 12 + 2 + 20) + 16 + 32, [2] = 8 + 32 + (4 + 1 + 2 + 20) + 16, [3] = 40, [4] = 16 + 4 + 16, [5] = 24 }
local MOST = { [3] = 40, [5] = 24 }

-- Whether each byte of a range is zero.
local function is_zero(range)
    for at = 0, range:len() - 1 do
        if range(at, 1):uint() ~= 0 then
            return false
        end
    end
    return true
end

-- A part of the datagram that may be cut from the capture; nil then.
local function part(tvb, at, len)
    if len <= 0 or at < 0 or at + len > tvb:len() then
        return nil
    end
    return tvb(at, len)
end

local function add_part(tree, field, tvb, at, len)
    local range = part(tvb, at, len)
    if range then
        tree:add(field, range)
    end
    return range
end

local function show_initiation(branch, tvb, len)
    add_part(branch, f.sender, tvb, 4, 4)
    add_part(branch, f.ephemeral, tvb, 8, 32)
    add_part(branch, f.static, tvb, 40, 48)
    add_part(branch, f.payload, tvb, 88, len - 32 - 88)
    add_part(branch, f.mac1, tvb, len - 32, 16)
    local mac2 = add_part(branch, f.mac2, tvb, len - 16, 16)
    if mac2 then
        branch:add(f.has_cookie, mac2, not is_zero(mac2)):set_generated()
    end
    return string.format("initiation from %08x", tvb(4, 4):uint())
end

local function show_response(branch, tvb, len)
    add_part(branch, f.receiver, tvb, 4, 4)
    add_part(branch, f.ephemeral, tvb, 8, 32)
    add_part(branch, f.payload, tvb, 40, len - 40)
    return string.format("response to %08x", tvb(4, 4):uint())
end

local function show_cookie(branch, tvb)
    add_part(branch, f.receiver, tvb, 4, 4)
    add_part(branch, f.cookie, tvb, 8, 16)
    add_part(branch, f.cookie_mac, tvb, 24, 16)
    return string.format("cookie for %08x", tvb(4, 4):uint())
end

local function show_data(branch, tvb, len)
    local path = branch:add(f.path, tvb(1, 1))
    if tvb(1, 1):uint() > 15 then
        path:add_proto_expert_info(e.path_number)
    end
    branch:add(f.grease, tvb(2, 2))
    add_part(branch, f.receiver, tvb, 4, 4)
    local counter = add_part(branch, f.counter, tvb, 8, 8)
    add_part(branch, f.sealed, tvb, 16, len - 32)
    add_part(branch, f.tag, tvb, len - 16, 16)
    branch:add(f.sealed_len, tvb(0, 1), len - 32):set_generated()
    return string.format("data to %08x, path %d, number %s, %d bytes", tvb(4, 4):uint(), tvb(1, 1):uint(),
        counter and tostring(counter:uint64()) or "?", len - 32)
end

local function show_reset(branch, tvb)
    add_part(branch, f.sender, tvb, 4, 4)
    add_part(branch, f.reset_token, tvb, 8, 16)
    return string.format("reset from %08x", tvb(4, 4):uint())
end

local SHOW = { show_initiation, show_response, show_cookie, show_data, show_reset }

function anabranch.dissector(tvb, pinfo, tree)
    local len = tvb:reported_len()
    if tvb:len() < 1 then
        return 0
    end
    local kind = tvb(0, 1):uint()
    -- Sec. 3.1: these are other protocols on the same port.
    if kind == 0 or kind > 15 then
        return 0
    end
    pinfo.cols.protocol = "Anabranch"
    local branch = tree:add(anabranch, tvb(), "Anabranch, sealed form")
    local item = branch:add(f.datagram, tvb(0, 1))
    local text
    if not SHOW[kind] then
        item:add_proto_expert_info(e.later)
        text = "of a later version"
    elseif len < LEAST[kind] or MOST[kind] and len > MOST[kind] then
        item:add_proto_expert_info(e.length)
        text = DATAGRAMS[kind] .. ", malformed"
    elseif tvb:len() < 8 then
        text = DATAGRAMS[kind]
    else
        if kind ~= 4 and not is_zero(tvb(1, 3)) then
            branch:add(anabranch, tvb(1, 3), "Zero"):add_proto_expert_info(e.header)
        end
        text = SHOW[kind](branch, tvb, len)
        local index, number = tvb(4, 4):uint(), pinfo.number
        if kind == 1 and not initiations[index] then
            initiations[index] = number
        end
        indices[index] = true
        if kind <= 3 and kind > 1 and initiations[index] and initiations[index] < number then
            branch:add(f.answers, initiations[index]):set_generated()
        end
    end
    if tvb:len() < math.min(len, 16) then
        branch:add_proto_expert_info(e.cut)
    end
    branch:append_text(": " .. text)
    pinfo.cols.info = text
    return tvb:len()
end

-- An initiation without a cookie has 16 zero bytes at its end, and so opens a conversation of ours. Data and resets from a new address have an index that is known.
local function is_ours(tvb)
    local len = tvb:reported_len()
    if tvb:len() < 8 then
        return false
    end
    local kind, index = tvb(0, 1):uint(), tvb(4, 4):uint()
    if not SHOW[kind] or len < LEAST[kind] or MOST[kind] and len > MOST[kind] then
        return false
    end
    if kind == 4 then
        return tvb(1, 1):uint() < 16 and indices[index] == true
    end
    if not is_zero(tvb(1, 3)) then
        return false
    end
    if kind == 1 then
        local mac2 = part(tvb, len - 16, 16)
        return initiations[index] ~= nil or mac2 ~= nil and is_zero(mac2)
    end
    return indices[index] == true
end

anabranch:register_heuristic("udp", function(tvb, pinfo, tree)
    -- A second look at a frame says what the first did, whatever came in between.
    local verdict = datagram_frames[pinfo.number]
    if verdict == nil then
        verdict = is_ours(tvb)
        datagram_frames[pinfo.number] = verdict
    end
    if not verdict then
        return false
    end
    anabranch.dissector(tvb, pinfo, tree)
    pinfo.conversation = anabranch
    return true
end)

-- "Decode As", and `-d udp.port==PORT,anabranch`: for captures that begin after the handshake.
DissectorTable.get("udp.port"):add_for_decode_as(anabranch)
