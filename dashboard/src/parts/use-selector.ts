/** Selects from signals, so that a component redraws only when the selected value changes. */
import { useComputed } from '@preact/signals';
import { useRef } from 'preact/hooks';

/** `read` may depend only on signals, and must return a JSON value. */
export function useSelector<Value>(read: () => Value): Value {
  const kept = useRef<{ readonly text: string | undefined; readonly value: Value }>(undefined);
  return useComputed(() => {
    const value = read();
    const text = JSON.stringify(value);
    if (kept.current === undefined || kept.current.text !== text) kept.current = { text, value };
    return kept.current.value;
  }).value;
}
