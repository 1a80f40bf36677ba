/** Finds the token counts in the last bytes of an answer. They are for metrics only, so counts that cannot be found cheaply are left out. */

export interface Usage {
  readonly input: number;
  readonly output: number;
}

const INPUT = /"(?:prompt_tokens|input_tokens)"\s*:\s*(\d{1,9})/;
const OUTPUT = /"(?:completion_tokens|output_tokens)"\s*:\s*(\d{1,9})/;

/** `tail` is the end of the body, one character per byte. */
export function findUsage(tail: string): Usage | undefined {
  const at = tail.lastIndexOf('"usage":{');
  if (at === -1) return undefined;
  const text = tail.slice(at, at + 1000);
  const input = INPUT.exec(text);
  if (input === null) return undefined;
  return { input: Number(input[1]), output: Number(OUTPUT.exec(text)?.[1] ?? 0) };
}
