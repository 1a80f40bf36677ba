/** One request at a time, aborted by the user or when the component unmounts. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { readEvents, SSE_BEGIN } from '../decide/stream-text.ts';
import { messageOf } from '../io/client.ts';

export interface RunningRequest {
  readonly running: boolean;
  /** Error message of the last request; empty if it succeeded. */
  readonly failure: string;
  start(work: (signal: AbortSignal) => Promise<void>): void;
  stop(): void;
}

export function useRequest(): RunningRequest {
  const [running, setRunning] = useState(false);
  const [failure, setFailure] = useState('');
  const current = useRef<AbortController>(null);
  useEffect(() => () => current.current?.abort(), []);
  const start = async (work: (signal: AbortSignal) => Promise<void>): Promise<void> => {
    current.current?.abort();
    const stop = new AbortController();
    current.current = stop;
    setFailure('');
    setRunning(true);
    try {
      await work(stop.signal);
    } catch (error) {
      if (!stop.signal.aborted) setFailure(messageOf(error));
    }
    if (current.current === stop) setRunning(false);
  };
  return { running, failure, start: (work) => void start(work), stop: () => current.current?.abort() };
}

/** Calls `onData` for each event of a streamed response. */
export async function eachEvent(response: Response, onData: (data: string) => void): Promise<void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = SSE_BEGIN;
  for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) {
    const read = readEvents(rest, part.value);
    rest = read.rest;
    for (const { data } of read.events) onData(data);
  }
}
