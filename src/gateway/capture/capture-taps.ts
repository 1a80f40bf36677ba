/**
 * Listens in on requests that a capture wants (`svcctl capture start`). While there is none, a request costs one
 * comparison. A tap stands where the gateway meets the client: it notes what passes through the request and the
 * response of Node, of the fast path or of this process itself, and passes it on unchanged.
 */
import type { SlotName } from '../../schema/words/names.ts';
import type { ClientRequest, ClientResponse } from '../client-exchange.ts';
import type { ExchangeRequest, ReportRequest } from '../exchange-deps.ts';
import { captureText, pairsOf, type HeaderPairs, type KeptBody } from './decide/capture-text.ts';

/** Which requests a capture wants: those of a caller, those that a slot got, or those that are both. */
export interface CaptureRule {
  readonly id: string;
  /** Key of a caller. */
  readonly caller?: string | undefined;
  readonly slot?: SlotName | undefined;
}

/** `text`: a request that has ended, for the captures `ids`. */
export type TakeCaptured = (ids: readonly string[], text: string) => void;

export type CaptureTaps = ReturnType<typeof createCaptureTaps>;

/** Long conversations fit, and the beginning of a recording says enough. */
const BODY_BYTES = 1024 * 1024;
/** Bodies of requests in flight, in each process. */
const HELD_BYTES = 64 * 1024 * 1024;

type TappedRequest = Pick<ExchangeRequest, 'req' | 'res' | 'caller'>;

export function createCaptureTaps(take: TakeCaptured, wallNow: () => number) {
  let rules: readonly CaptureRule[] | undefined;
  let leftBytes = HELD_BYTES;

  /** Keeps the beginning of a body, unless other bodies fill the memory for it. */
  function keepBody() {
    const pieces: Buffer[] = [];
    let kept = 0;
    let isCut = false;
    return {
      add(data: Buffer | string, encoding: BufferEncoding = 'utf8') {
        const bytes = typeof data === 'string' ? Buffer.from(data, encoding) : data;
        const room = Math.min(bytes.length, BODY_BYTES - kept, leftBytes);
        isCut ||= room < bytes.length;
        kept += room;
        leftBytes -= room;
        // A copy, because the gateway frees the memory of what it has sent.
        if (room > 0) pieces.push(Buffer.from(bytes.subarray(0, room)));
      },
      end(): KeptBody {
        leftBytes += kept;
        return { bytes: Buffer.concat(pieces), isCut };
      },
    };
  }

  function listen({ req, res }: TappedRequest, wanted: readonly CaptureRule[], report: ReportRequest): ReportRequest {
    const startedAt = wallNow();
    const began = performance.now();
    const [asked, answered] = [keepBody(), keepBody()];
    let firstByteMs: number | undefined;
    let head: { readonly status?: number; readonly headers: HeaderPairs } = { headers: [] };
    let isOver = false;
    listenToRequest(req, (bytes) => {
      if (!isOver) asked.add(bytes);
    });
    listenToResponse(res, {
      onHead: (status, headers) => (head = { status, headers }),
      onBody(data, encoding) {
        if (isOver) return;
        firstByteMs ??= performance.now() - began;
        answered.add(data, encoding);
      },
    });
    return (finished) => {
      report(finished);
      isOver = true;
      const [request, answer] = [asked.end(), answered.end()];
      const { slot, moves = [] } = finished;
      const isOf = (name: SlotName): boolean => slot === name || moves.some(({ from }) => from === name);
      const ids = wanted.flatMap((rule) => (rule.slot === undefined || isOf(rule.slot) ? [rule.id] : []));
      if (ids.length === 0) return;
      const { status, headers } = head;
      const facts = { request: { headers: pairsOf(req.rawHeaders), body: request }, answer: { status, headers, body: answer } };
      take(ids, captureText({ finished, startedAt, firstByteMs, ...facts }));
    };
  }

  return {
    /** Applies to requests that begin from now on. */
    set(next: readonly CaptureRule[]): void {
      rules = next.length === 0 ? undefined : next;
    },
    /** Returns what takes the place of `report` for this request; undefined if no capture wants it. */
    tap(request: TappedRequest, report: ReportRequest): ReportRequest | undefined {
      if (rules === undefined) return undefined;
      const wanted = rules.filter(({ caller }) => caller === undefined || caller === request.caller?.key);
      return wanted.length === 0 ? undefined : listen(request, wanted, report);
    },
  };
}

/** The methods of this one request are replaced, so that no other request passes through here. */
function listenToRequest(req: ClientRequest, onBody: (bytes: Buffer) => void): void {
  const on = req.on.bind(req);
  Object.assign(req, {
    on(event: 'data' | 'end', listener: (bytes: Buffer) => void) {
      const heard = (bytes: Buffer): void => {
        onBody(bytes);
        listener(bytes);
      };
      Reflect.apply(on, req, [event, event === 'data' ? heard : listener]);
      return req;
    },
  });
}

interface ResponseListener {
  readonly onHead: (status: number, headers: HeaderPairs) => void;
  readonly onBody: (data: Buffer | string, encoding?: BufferEncoding) => void;
}

type WriteArguments = [data?: Buffer | string, encoding?: BufferEncoding];

function listenToResponse(res: ClientResponse, { onHead, onBody }: ResponseListener): void {
  const [writeHead, write, end] = [res.writeHead.bind(res), res.write.bind(res), res.end.bind(res)];
  Object.assign(res, {
    writeText: undefined,
    writeHead(status: number, headers: string[] | Record<string, string | number>): unknown {
      onHead(status, Array.isArray(headers) ? pairsOf(headers) : Object.entries(headers).map(([name, value]) => [name, String(value)]));
      return writeHead(status, headers);
    },
    write(...written: WriteArguments): unknown {
      if (written[0] !== undefined) onBody(written[0], written[1]);
      return Reflect.apply(write, res, written);
    },
    end(...written: WriteArguments): unknown {
      if (written[0] !== undefined) onBody(written[0], written[1]);
      return Reflect.apply(end, res, written);
    },
  });
}
