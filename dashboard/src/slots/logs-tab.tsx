/** The live output of a slot's server. Scrolling up stops following, so that the lines being read stay in place. */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { appendText, matchesOf, NO_LINES, type LogLines } from '../decide/stream-text.ts';
import { messageOf, type Client } from '../io/client.ts';
import { SearchField } from '../parts/fields.tsx';
import { T } from '../texts.ts';

const WRAP_KEY = 'svc.logs.wrap';
/** Scrolled to the end, give or take this much. */
const END_PX = 24;

interface Log extends LogLines {
  readonly note: string;
  readonly done: boolean;
}

export function LogsTab({ name }: { readonly name: string }): JSX.Element {
  const log = useLog(name);
  const [search, setSearch] = useState('');
  const [wrap, setWrap] = useState(() => localStorage.getItem(WRAP_KEY) !== 'no');
  const [follow, setFollow] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  const lines = log.open === '' ? log.lines : [...log.lines, log.open];
  const matches = useMemo(() => new Set(matchesOf(lines, search)), [log, search]);
  useLayoutEffect(() => {
    const element = box.current;
    if (follow && element !== null) element.scrollTop = element.scrollHeight;
  }, [log, follow, wrap]);
  const onScroll = ({ currentTarget: { scrollTop, clientHeight, scrollHeight } }: { readonly currentTarget: HTMLDivElement }): void =>
    setFollow(scrollHeight - scrollTop - clientHeight < END_PX);
  const changeWrap = (next: boolean): void => {
    localStorage.setItem(WRAP_KEY, next ? 'yes' : 'no');
    setWrap(next);
  };
  return (
    <div class="tab logs">
      <div class="tools">
        <SearchField label={T.logSearch} value={search} onValue={setSearch} />
        {search !== '' && <span role="status">{T.matches(matches.size)}</span>}
        <Check label={T.logFollow} checked={follow} onChange={setFollow} />
        <Check label={T.logWrap} checked={wrap} onChange={changeWrap} />
      </div>
      {log.note !== '' && <p role="status">{log.note}</p>}
      <div ref={box} class={wrap ? 'log wrap' : 'log'} tabIndex={0} role="log" aria-live="off" aria-label={T.log} onScroll={onScroll}>
        {lines.map((line, index) => (
          <div key={index} class={search === '' ? '' : matches.has(index) ? 'match' : 'dim'}>
            {line}
          </div>
        ))}
        {log.done && lines.length === 0 && <p>{T.logNone}</p>}
      </div>
    </div>
  );
}

interface CheckProps {
  readonly label: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
}

function Check({ label, checked, onChange }: CheckProps): JSX.Element {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  );
}

function useLog(name: string): Log {
  const { client } = useApp();
  const [log, setLog] = useState<Log>({ ...NO_LINES, note: '', done: false });
  useEffect(() => {
    const leave = new AbortController();
    readLog(client, name, leave.signal, {
      text: (text) => setLog((before) => ({ ...before, ...appendText(before, text) })),
      note: (note) => setLog((before) => ({ ...before, note })),
    }).then(
      () => setLog((before) => ({ ...before, done: true })),
      (error: unknown) => {
        if (!leave.signal.aborted) setLog((before) => ({ ...before, note: messageOf(error), done: true }));
      },
    );
    return () => leave.abort();
  }, [name]);
  return log;
}

interface LogSink {
  readonly text: (text: string) => void;
  readonly note: (note: string) => void;
}

async function readLog(client: Client, name: string, signal: AbortSignal, sink: LogSink): Promise<void> {
  const response = await client.fetch(`/api/slots/${encodeURIComponent(name)}/logs?follow=1&tail=1000`, { signal });
  if (response.headers.get('x-svc-workload') === 'ended') sink.note(T.logEnded);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) sink.text(part.value);
}
