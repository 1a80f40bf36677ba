/** Reads a part of signals, so that what shows this part is drawn again only when the part is another one. */
import { useComputed } from '@preact/signals';
import { useRef } from 'preact/hooks';

/** `read` must use signals alone, and return something that JSON can express. */
export function usePart<Value>(read: () => Value): Value {
  const kept = useRef<{ readonly text: string | undefined; readonly value: Value }>(undefined);
  return useComputed(() => {
    const value = read();
    const text = JSON.stringify(value);
    if (kept.current === undefined || kept.current.text !== text) kept.current = { text, value };
    return kept.current.value;
  }).value;
}
