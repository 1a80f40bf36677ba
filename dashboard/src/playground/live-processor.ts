/** Sends the samples of a microphone to the page. Runs in the audio thread, whose global scope has these two names. */
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

class LiveProcessor extends AudioWorkletProcessor {
  #heard: number[] = [];

  /** Called with 128 samples at a time, sends about a tenth of a second. */
  process([[samples = new Float32Array()] = []]: readonly (readonly Float32Array[])[]): boolean {
    this.#heard.push(...samples);
    if (this.#heard.length >= 4096) this.port.postMessage(Float32Array.from(this.#heard.splice(0)));
    return true;
  }
}

registerProcessor('live', LiveProcessor);
