/**
 * What the server computes when a gateway reports its counts of one caller, and asks for more. A key holds a hash with
 * one field for each gateway:
 *
 *   at, seq   when it reported by the clock of the server, and its how many-th report that was
 *   counts    for each limit, amounts and the milliseconds for which they still count then, in turn
 *
 * A report replaces the one before it, so it may be sent again; one that arrives late is refused. The sum over all
 * gateways stays within the limits, because a script runs alone. If the clock of the server goes back, earlier reports
 * count as if they were new; if it goes forward, gateways that are no longer known report again.
 */
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';

/** Each list has one entry for requests, tokens of a minute, tokens of a day and requests in flight. */
export interface CountReport {
  readonly counts: readonly (readonly number[])[];
  readonly need: readonly number[];
  /** −1: none. */
  readonly limits: readonly number[];
  /** What is granted counts for so long. */
  readonly keepMs: readonly number[];
  /** The part of what is free that may be granted besides, divided among the gateways that use it. */
  readonly part: number;
}

export interface CountAnswer {
  /** The position of the limit that does not allow it; 0: granted, 1 and more: refused. */
  readonly over: number;
  /** Granted besides. */
  readonly extra: readonly number[];
  readonly others: readonly OtherCounts[];
  /** The server knew this gateway. */
  readonly wasKnown: boolean;
}

export interface OtherCounts {
  readonly agoMs: number;
  readonly counts: readonly (readonly number[])[];
}

/** KEYS: of the caller. ARGV: name of the gateway, number of the report, and the report. */
export const COUNTING_SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local seq, ask = tonumber(ARGV[2]), cjson.decode(ARGV[3])
local sums, others, known = {0, 0, 0, 0}, {}, 0
local function add(entry, age)
  local counts = false
  for limit = 1, 4 do
    local list = entry.counts[limit]
    for i = 1, #list, 2 do
      if list[i + 1] > age then
        sums[limit] = sums[limit] + list[i]
        counts = true
      end
    end
  end
  return counts
end
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local entry = cjson.decode(all[i + 1])
  if all[i] == ARGV[1] then
    known = 1
    if entry.seq >= seq then return redis.error_reply('SVC a later report has come before') end
  else
    if entry.at > now then
      entry.at = now
      redis.call('HSET', KEYS[1], all[i], cjson.encode(entry))
    end
    if add(entry, now - entry.at) then
      others[#others + 1] = cjson.encode({agoMs = now - entry.at, counts = entry.counts})
    else
      redis.call('HDEL', KEYS[1], all[i])
    end
  end
end
add(ask, 0)
local over, extra = 0, {0, 0, 0, 0}
for limit = 1, 4 do
  local most, need = ask.limits[limit], ask.need[limit]
  if most >= 0 then
    local free = most - sums[limit] - need
    if need > 0 and free < 0 and over == 0 then over = limit end
    extra[limit] = math.max(0, math.floor(free * ask.part / (#others + 1)))
  end
end
for limit = 1, 4 do
  if over > 0 then extra[limit] = 0 end
  local granted = over > 0 and 0 or ask.need[limit] + extra[limit]
  if granted > 0 then
    local list = ask.counts[limit]
    list[#list + 1], list[#list + 2] = granted, ask.keepMs[limit]
  end
end
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({at = now, seq = seq, counts = ask.counts}))
redis.call('PEXPIRE', KEYS[1], 90000000)
return {over, extra, known, others}
`;

// Lua has one kind of table: an empty list comes as an empty object.
const List = <Entry extends z.ZodType>(entry: Entry) =>
  z.preprocess((value) => (JSON.stringify(value) === '{}' ? [] : value), z.array(entry));
const Other = z.object({ agoMs: z.number(), counts: List(List(z.number())) });
const Reply = z.tuple([z.int().min(0).max(4), z.array(z.number().min(0)).length(4), z.number(), z.array(z.string())]);

/** Throws if it is none. */
export function parseAnswer(reply: unknown): CountAnswer {
  const parsed = Reply.safeParse(reply);
  const others = parsed.data?.[3].map((text) => Other.safeParse(parseJson(text)).data) ?? [];
  const known = others.filter((other) => other !== undefined);
  if (!parsed.success || known.length < others.length)
    throw new Error('the answer is not that of the script: let "SVC_LIMITS_URL" name a Valkey or a Redis');
  const [over, extra, wasKnown] = parsed.data;
  return { over, extra, wasKnown: wasKnown === 1, others: known };
}
