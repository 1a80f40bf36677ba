/** The token counts in an answer's last bytes, for metrics only: what cannot be found cheaply is left out. */

export interface Usage {
  readonly input: number;
  readonly output: number;
}

const INPUT = /"(?:prompt_tokens|input_tokens)"\s*:\s*(\d{1,9})/;
const OUTPUT = /"(?:completion_tokens|output_tokens)"\s*:\s*(\d{1,9})/;

/** `tail`: the end of the body, one character a byte. */
export function readUsage(tail: string): Usage | undefined {
  const at = tail.lastIndexOf('"usage":{');
  if (at === -1) return undefined;
  const text = tail.slice(at, at + 1000);
  const input = INPUT.exec(text);
  if (input === null) return undefined;
  return { input: Number(input[1]), output: Number(OUTPUT.exec(text)?.[1] ?? 0) };
}
