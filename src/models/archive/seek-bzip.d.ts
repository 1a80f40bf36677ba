/** What is used of the package, which has no types of its own. */
declare module 'seek-bzip' {
  interface Input {
    /** Throws at the end. */
    readByte(): number;
    /** Returns how many bytes were read: fewer only at the end. */
    read(into: number[] | Uint8Array, from: number, length: number): number;
    eof(): boolean;
  }
  interface Output {
    writeByte(byte: number): void;
  }
  interface Bunzip {
    /** Synchronous. `multistream`: goes on after the end of a stream, as archives of parallel compressors have several. Throws for damaged data. */
    decode(input: Input, output: Output, multistream: boolean): void;
  }
  const bunzip: Bunzip;
  export default bunzip;
}
