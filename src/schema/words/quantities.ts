/** Durations (`15m`) and sizes (`9Gi`) as users write them. Without zod, which loads slower than most verbs run. */

export const DURATION_PATTERN = '^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)$';
export const SIZE_PATTERN = '^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$';

export const MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
export const BYTES: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

export const DURATION_RULE = 'Write a duration as a number and a unit: "500ms", "30s", "15m", "2h" or "1d"';
export const SIZE_RULE = 'Write a size as a number and a unit: "512Mi", "9Gi" (powers of 1024) or "9G" (powers of 1000)';
/** API servers need an upper bound to estimate the cost of validation rules. */
export const QUANTITY_LENGTH = 24;

/** Schema metadata: limits of a duration or size, from which generators make rules and references. */
export interface Limits {
  readonly least: string;
  readonly most: string;
}

/** Describes the permitted range. */
export const limitsRule = (what: string, { least, most }: Limits): string => `Use a ${what} from "${least}" to "${most}"`;

/** Explains, for each pattern, what to write instead of a value that does not match it. */
export const QUANTITY_RULES: Readonly<Record<string, string>> = { [DURATION_PATTERN]: DURATION_RULE, [SIZE_PATTERN]: SIZE_RULE };

/** Whether a text is a duration, such as "500ms" or "15m". */
export const isDuration = (text: string): boolean => text.length <= QUANTITY_LENGTH && new RegExp(DURATION_PATTERN).test(text);

/** Returns the milliseconds of a text that `Duration` accepts. */
export const parseDurationMs = (text: string): number => convert(text, MILLISECONDS);

/** Returns the bytes of a text that `Size` accepts. */
export const parseSizeBytes = (text: string): number => convert(text, BYTES);

function convert(text: string, units: Readonly<Record<string, number>>): number {
  const match = /^([0-9.]+)([A-Za-z]*)$/.exec(text);
  return Math.round(Number(match?.[1]) * (units[match?.[2] ?? ''] ?? Number.NaN));
}

const SIZE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** `9.0 GiB`, `512 MiB`. */
export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < SIZE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${SIZE_UNITS[unit] ?? ''}`;
}

/** Days, of which all are meant where none is written, and two times; the second one may be `24:00`. */
export const WARM_TIME =
  /^((Mon|Tue|Wed|Thu|Fri|Sat|Sun)(-(Mon|Tue|Wed|Thu|Fri|Sat|Sun))?(,(Mon|Tue|Wed|Thu|Fri|Sat|Sun)(-(Mon|Tue|Wed|Thu|Fri|Sat|Sun))?)* )?([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$/;
