package main

// crc16 is the CRC of the Redis Cluster specification (XMODEM: polynomial 1021, zero at the start, nothing reflected),
// one bit at a time. It shares nothing with package slotmap, so that a mistake there cannot confirm itself here.
func crc16(data []byte) uint16 {
	var crc uint16
	for _, b := range data {
		for bit := 7; bit >= 0; bit-- {
			top := crc>>15 ^ uint16(b>>bit)&1
			crc <<= 1
			if top != 0 {
				crc ^= 0x1021
			}
		}
	}
	return crc
}
