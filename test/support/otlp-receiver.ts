/** A collector: takes traces over OTLP (`http/protobuf`) and reads them by the wire format alone, without packages of OpenTelemetry. */
import { createServer, type IncomingHttpHeaders } from 'node:http';

export interface ReceivedSpan {
  readonly name: string;
  /** As in the wire format: 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  /** Unix nanoseconds. */
  readonly from: bigint;
  readonly until: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** 0 unset, 2 error. */
  readonly status: number;
  readonly resource: Readonly<Record<string, unknown>>;
}

type Answer = 'ok' | 'hang' | 'html' | number;

export async function startReceiver() {
  const spans: ReceivedSpan[] = [];
  const headers: IncomingHttpHeaders[] = [];
  let answer: Answer = 'ok';
  let calls = 0;
  const server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on('data', (piece: Buffer) => pieces.push(piece));
    req.on('end', () => {
      calls += 1;
      headers.push(req.headers);
      if (answer === 'hang') return;
      if (typeof answer === 'number') return void res.writeHead(answer).end('no');
      if (req.url === '/v1/traces') spans.push(...readTraces(Buffer.concat(pieces)));
      if (answer === 'html') return void res.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><h1>It works!</h1>');
      res.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    headers,
    calls: () => calls,
    answerWith: (next: Answer): void => void (answer = next),
    close(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}

type Fields = ReadonlyMap<number, readonly (Buffer | bigint)[]>;

/** https://protobuf.dev/programming-guides/encoding/ */
function readFields(bytes: Buffer): Fields {
  const fields = new Map<number, (Buffer | bigint)[]>();
  let at = 0;
  const readVarint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at);
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (count: number): Buffer => bytes.subarray(at, (at += count));
  const readers: Readonly<Record<number, () => Buffer | bigint>> = {
    0: readVarint,
    1: () => take(8),
    2: () => take(Number(readVarint())),
    5: () => take(4),
  };
  while (at < bytes.length) {
    const key = Number(readVarint());
    const value = readers[key & 7]?.();
    if (value === undefined) throw new Error(`Wire type ${key & 7} is not known`);
    fields.set(key >> 3, [...(fields.get(key >> 3) ?? []), value]);
  }
  return fields;
}

const messages = (fields: Fields, number: number): readonly Fields[] =>
  (fields.get(number) ?? []).flatMap((value) => (Buffer.isBuffer(value) ? [readFields(value)] : []));
const bytesOf = (fields: Fields, number: number): Buffer => {
  const [value] = fields.get(number) ?? [];
  return Buffer.isBuffer(value) ? value : Buffer.alloc(0);
};
const textOf = (fields: Fields, number: number): string => bytesOf(fields, number).toString('utf8');
const hexOf = (fields: Fields, number: number): string => bytesOf(fields, number).toString('hex');
const numberOf = (fields: Fields, number: number): number => Number(fields.get(number)?.[0] ?? 0);

function attributesOf(fields: Fields, number: number): Readonly<Record<string, unknown>> {
  const valueOf = (value: Fields): unknown => {
    if (value.has(1)) return textOf(value, 1);
    if (value.has(2)) return numberOf(value, 2) === 1;
    return value.has(3) ? numberOf(value, 3) : bytesOf(value, 4).readDoubleLE();
  };
  return Object.fromEntries(messages(fields, number).map((each) => [textOf(each, 1), messages(each, 2).map(valueOf)[0]]));
}

/** https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto */
function readTraces(bytes: Buffer): readonly ReceivedSpan[] {
  return messages(readFields(bytes), 1).flatMap((ofResource) => {
    const resource = messages(ofResource, 1).map((each) => attributesOf(each, 1))[0] ?? {};
    const spans = messages(ofResource, 2).flatMap((ofScope) => messages(ofScope, 2));
    return spans.map((span) => ({
      traceId: hexOf(span, 1),
      spanId: hexOf(span, 2),
      parentId: hexOf(span, 4),
      name: textOf(span, 5),
      kind: numberOf(span, 6),
      from: bytesOf(span, 7).readBigUInt64LE(),
      until: bytesOf(span, 8).readBigUInt64LE(),
      attributes: attributesOf(span, 9),
      links: messages(span, 13).map((link) => ({ traceId: hexOf(link, 1), spanId: hexOf(link, 2) })),
      status: messages(span, 15).map((status) => numberOf(status, 3))[0] ?? 0,
      resource,
    }));
  });
}
