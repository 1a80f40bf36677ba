/** What a session of `/v1/realtime` has heard, and how its events extend it. Pure. */
import { at, parseJson, textOf } from './untrusted.ts';

export interface LiveTranscript {
  readonly isListening: boolean;
  /** Those that are not final are being said or transcribed. */
  readonly utterances: readonly { readonly id: string; readonly text: string; readonly isFinal: boolean }[];
  readonly failure: string;
}

export const NOTHING_HEARD: LiveTranscript = { isListening: false, utterances: [], failure: '' };

export const isPending = ({ utterances }: LiveTranscript): boolean => utterances.some(({ isFinal }) => !isFinal);

/** `data` is a message of the server. Unknown ones change nothing. */
export function extendTranscript(before: LiveTranscript, data: string): LiveTranscript {
  const event = parseJson(data);
  const [id, failure] = [textOf(at(event, 'item_id')), textOf(at(at(event, 'error'), 'message'))];
  const { utterances } = before;
  const found = utterances.findIndex((each) => each.id === id);
  // The next utterance may begin before this one is transcribed.
  const place = found === -1 ? utterances.length : found;
  const say = (text: string, isFinal: boolean): LiveTranscript => ({
    ...before,
    utterances: utterances.toSpliced(place, 1, { id, text, isFinal }),
  });
  switch (textOf(at(event, 'type')).replace('conversation.item.input_audio_transcription', 'transcript')) {
    case 'session.created':
      return { ...before, isListening: true };
    case 'input_audio_buffer.speech_started':
      return say('', false);
    case 'transcript.delta':
      return say((utterances[place]?.text ?? '') + textOf(at(event, 'delta')), false);
    case 'transcript.completed':
      return say(textOf(at(event, 'transcript')), true);
    case 'transcript.failed':
      return { ...before, utterances: utterances.toSpliced(place, 1), failure };
    case 'error':
      return { ...before, failure };
    default:
      return before;
  }
}
