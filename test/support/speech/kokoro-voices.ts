/**
 * The voices of Kokoro v1.0 with upstream's names (https://huggingface.co/hexgrad/Kokoro-82M/blob/main/VOICES.md, read in November 2026), and their order in the archives that
 * sherpa-onnx released under one name: until 2026-09-08 without `em_santa`, since then with it at the end.
 */
const NAMES: Readonly<Record<string, string>> = {
  af: 'alloy aoede bella heart jessica kore nicole nova river sarah sky',
  am: 'adam echo eric fenrir liam michael onyx puck santa',
  bf: 'alice emma isabella lily',
  bm: 'daniel fable george lewis',
  ef: 'dora',
  em: 'alex santa',
  ff: 'siwis',
  hf: 'alpha beta',
  hm: 'omega psi',
  if: 'sara',
  im: 'nicola',
  jf: 'alpha gongitsune nezumi tebukuro',
  jm: 'kumo',
  pf: 'dora',
  pm: 'alex santa',
  zf: 'xiaobei xiaoni xiaoxiao xiaoyi',
  zm: 'yunjian yunxi yunxia yunyang',
};

export const KOKORO_VOICES: readonly string[] = Object.entries(NAMES).flatMap(([prefix, names]) =>
  names.split(' ').map((name) => `${prefix}_${name}`),
);

const FIRST_ARCHIVE = KOKORO_VOICES.filter((name) => name !== 'em_santa');

export const KOKORO_ARCHIVES: Readonly<Record<string, readonly string[]>> = {
  'until 2026-09-08': FIRST_ARCHIVE,
  'since 2026-09-08': [...FIRST_ARCHIVE, 'em_santa'],
};
