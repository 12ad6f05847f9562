/** The microphone, in blocks of samples at a rate of one's own. */
import { WickError } from "libwick";

/** Calls onBlock with each block until the signal comes. */
export async function hearMicrophone(rate: number, size: number, signal: AbortSignal,
                                     onBlock: (block: Float32Array) => void): Promise<void> {
  const { mediaDevices } = navigator as { mediaDevices?: MediaDevices }; // of secure pages alone
  if (!mediaDevices) throw new WickError("UNSUPPORTED", "the microphone needs https, or localhost");
  const stream = await mediaDevices.getUserMedia({ audio: {
    channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false,
  } }).catch((cause: unknown) => {
    throw new WickError("IO", `the microphone cannot be used: ${
      cause instanceof Error ? cause.message : String(cause)}`, { cause });
  });
  const context = new AudioContext({ sampleRate: rate });
  try {
    await context.audioWorklet.addModule("microphone_worklet.js");
    const node = new AudioWorkletNode(context, "blocks", { processorOptions: { size } });
    node.port.onmessage = ({ data }: MessageEvent<Float32Array>) => onBlock(data);
    // Firefox has no source at a rate that is not the device's.
    context.createMediaStreamSource(stream).connect(node).connect(context.destination);
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener("abort", () => resolve());
    });
  } finally {
    for (const track of stream.getTracks()) track.stop();
    await context.close();
  }
}

/** The samples of a sound file in whatever format the browser plays, as one channel. */
export async function decodeSound(bytes: ArrayBuffer, rate: number): Promise<Float32Array> {
  const context = new OfflineAudioContext(1, 1, rate);
  const sound = await context.decodeAudioData(bytes).catch((cause: unknown) => {
    throw new WickError("FORMAT", "this is not a sound file that the browser can play", { cause });
  });
  const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
  return channels[0]!.map((_, i) =>
    channels.reduce((sum, channel) => sum + channel[i]!, 0) / channels.length);
}
