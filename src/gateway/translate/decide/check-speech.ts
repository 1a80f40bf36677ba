/** Checks the length of the text in a request for speech, and finds its voice. The rest is left to the server. Pure. */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { VoiceName } from '../../../schema/words/names.ts';
import type { BodyProblem } from '../../body/body-scan.ts';

const Request = z.object({ input: z.string(), voice: z.unknown().optional(), ref_audio: z.unknown().optional() });
/** OpenAI's clients send a name, or an object with an id. */
const Voice = z.union([VoiceName, z.object({ id: VoiceName }).transform(({ id }) => id)]);
/** Clients may begin a body with it. */
const BYTE_ORDER_MARK = '\ufeff';

interface CheckedSpeech {
  readonly problem?: BodyProblem;
  /** Possibly the name of a stored voice. Undefined if the request brings a recording of its own. */
  readonly voice?: VoiceName | undefined;
}

/** `limit` in characters, of which an emoji is one. */
export function checkSpeech(body: string, limit: number): CheckedSpeech {
  const json = parseJson(body.startsWith(BYTE_ORDER_MARK) ? body.slice(1) : body);
  if (json === undefined) return wrong('The body is not a JSON object', null);
  const request = Request.safeParse(json).data;
  if (request === undefined) return wrong('"input" is not a string: send the text to speak');
  const { input, voice, ref_audio: recording } = request;
  if (input.trim() === '') return wrong('"input" is empty: send the text to speak');
  const named = recording === undefined || recording === null ? Voice.safeParse(voice).data : undefined;
  // Counting characters takes longer than the number of code units, of which there are at least as many.
  if (input.length <= limit) return { voice: named };
  const characters = Array.from(input).length;
  if (characters <= limit) return { voice: named };
  return wrong(`"input" has ${characters} characters: send at most ${limit} ("SVC_SPEECH_LIMIT")`);
}

const wrong = (message: string, param: string | null = 'input'): CheckedSpeech => ({ problem: { message, param } });
