/** Whether a request for speech has a text of a permitted length. Everything else is left to the model server. Pure. */
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';

const Request = z.object({ input: z.string() });
/** Of UTF-8: clients may begin a body with it. */
const BYTE_ORDER_MARK = '\ufeff';

export interface SpeechProblem {
  readonly message: string;
  readonly param: string | null;
}

/** `limit` in characters, of which an emoji is one. Undefined: nothing is wrong. */
export function checkSpeech(body: string, limit: number): SpeechProblem | undefined {
  const json = parseJson(body.startsWith(BYTE_ORDER_MARK) ? body.slice(1) : body);
  if (json === undefined) return { message: 'Send a JSON object as the body', param: null };
  const request = Request.safeParse(json).data;
  if (request === undefined) return { message: 'Write the text to speak as a string in "input"', param: 'input' };
  if (request.input.trim() === '') return { message: 'Write the text to speak in "input": it is empty', param: 'input' };
  // Counting characters takes longer than the number of code units, of which there are at least as many.
  if (request.input.length <= limit) return undefined;
  const characters = [...request.input].length;
  if (characters <= limit) return undefined;
  return { message: `Send at most ${limit} characters in "input" ("SVC_SPEECH_LIMIT"): it has ${characters}`, param: 'input' };
}
